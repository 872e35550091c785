/* The detector of data races (races.cpp), as the emulator tells it what runs. All calls do nothing unless EMULATOR_RACES is set. */
#pragma once
#include <cstddef>

bool races_watched();
void races_device_memory(char *base); /* the arena, as soon as there is one */
/* Shared memory of the blocks that follow: static and dynamic. */
void races_shared_memory(char *fixed, size_t fixed_bytes, char *dynamic, size_t dynamic_bytes);
void races_launch(const char *kernel);
void races_block(unsigned block);
void races_thread(unsigned thread);                          /* of the block: who runs from here on */
void races_nobody();                                         /* the emulator itself: its accesses are none of a kernel's */
void races_copy(const void *to, const void *from, size_t n); /* by who runs; from: null, nothing */
void races_block_barrier();
void races_warp_barrier(unsigned warp);
