#pragma once
#include <stddef.h>
#include <stdint.h>

/* The checksum of zip archives, of more bytes after those that gave `crc` (0 at the start). */
uint32_t lc_crc32(uint32_t crc, const void *data, size_t size);
