/* NVRTC for the emulated driver: a kernel text and prelude.h make a library, by the system's compiler. EMULATOR_CC names the compiler,
 * EMULATOR_PRELUDE the file prelude.h, EMULATOR_KEPT a folder for libraries. A text in which EMULATOR_PLANT_OLD stands has
 * EMULATOR_PLANT_NEW there; "emulator: planted" on stderr says so. With EMULATOR_RACES it tells of every access (races.cpp). */
#include "races.h"
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <string>
#include <unistd.h>

#define CALL(name) extern "C" int name
struct program {
    std::string source, image, log;
};
static std::string read_all(const char *path)
{
    std::string s;
    if (FILE *f = fopen(path, "rb")) {
        char   buffer[65536];
        size_t n;
        while ((n = fread(buffer, 1, sizeof buffer, f)) > 0) s.append(buffer, n);
        fclose(f);
    }
    return s;
}
CALL(nvrtcVersion)(int *major, int *minor) { return *major = 0, *minor = 1, 0; }
CALL(nvrtcCreateProgram)(void **p, const char *source, const char *, int, const char *const *, const char *const *)
{
    return *p = new program{ source, "", "" }, 0;
}
static void plant(std::string &source)
{
    const char *old = getenv("EMULATOR_PLANT_OLD"), *planted = getenv("EMULATOR_PLANT_NEW");
    size_t      place = old && planted ? source.find(old) : std::string::npos;
    if (place == std::string::npos) return;
    if (source.find(old, place + 1) != std::string::npos) fprintf(stderr, "emulator: what to plant in occurs twice\n"), abort();
    source.replace(place, strlen(old), planted);
    fprintf(stderr, "emulator: planted\n");
}
static bool give_image(program *q, const std::string &code)
{
    uint64_t n = code.size();
    q->image = std::string("EMULATED") + std::string((const char *)&n, 8) + code;
    return n > 0;
}
CALL(nvrtcCompileProgram)(void *p, int, const char *const *)
{
    program *q = (program *)p;
    plant(q->source);
    const char *cc = getenv("EMULATOR_CC"), *prelude = getenv("EMULATOR_PRELUDE");
    char        stem[] = "/tmp/lucid-emulated-XXXXXX";
    int         fd = mkstemp(stem);
    if (fd < 0) return 1;
    close(fd);
    std::string name = stem, text = races_watched() ? "#define EMULATED_RACES\n" : "";
    text += read_all(prelude ? prelude : "prelude.h") + q->source;
    std::regex functions("__global__\\s+void\\s+(\\w+)\\s*\\(");
    bool       own = q->source.find("KERNEL(") != std::string::npos; /* the backend's own texts */
    if (!own)                                                        /* theirs declare it as CUDA does */
        text = std::regex_replace(text, std::regex("extern\\s+__shared__\\s+(\\w+)\\s+(\\w+)\\[\\]"), "SHARED_MEMORY($1, $2)");
    for (std::sregex_iterator i(q->source.begin(), q->source.end(), functions), end; !own && i != end; ++i)
        text += "\nEMULATED_FUNCTION(" + (*i)[1].str() + ")";
    text += "\n";
    const char *kept = getenv("EMULATOR_KEPT");
    std::string found = kept ? std::string(kept) + "/" + std::to_string(std::hash<std::string>()(text)) + ".so" : "";
    if (kept && give_image(q, read_all(found.c_str()))) return remove(stem), 0;
    FILE *f = fopen((name + ".cpp").c_str(), "wb");
    fwrite(text.data(), 1, text.size(), f), fclose(f);
    std::string command = std::string(cc ? cc : "g++") +
                          " -std=c++17 -O1 -fsanitize=alignment,bounds -fsanitize-undefined-trap-on-error"
                          " -fwrapv -fno-strict-aliasing -w -shared -fPIC -ffp-contract=off -DLC_EMULATED ";
    if (races_watched()) /* the calls without the runtime, which -nodefaultlibs leaves out */
        command += "-fsanitize=thread --param=tsan-distinguish-volatile=1 --param=tsan-instrument-func-entry-exit=0 "
                   "-fno-threadsafe-statics"
                   " -nodefaultlibs ";
    command += name + ".cpp -o " + name + ".so " + (races_watched() ? "-lstdc++ -lm -lgcc -lc" : "") + " 2> " + name + ".log";
    int rc = system(command.c_str());
    q->log = read_all((name + ".log").c_str());
    std::string code = read_all((name + ".so").c_str());
    give_image(q, code);
    if (kept && !rc) rename((name + ".so").c_str(), found.c_str());
    for (const char *end : { "", ".cpp", ".so", ".log" }) remove((name + end).c_str());
    return rc ? 6 : 0;
}
CALL(nvrtcDestroyProgram)(void **p) { return delete (program *)*p, 0; }
CALL(nvrtcGetCUBINSize)(void *p, size_t *n) { return *n = ((program *)p)->image.size(), 0; }
CALL(nvrtcGetCUBIN)(void *p, char *image)
{
    return memcpy(image, ((program *)p)->image.data(), ((program *)p)->image.size()), 0;
}
CALL(nvrtcGetProgramLogSize)(void *p, size_t *n) { return *n = ((program *)p)->log.size() + 1, 0; }
CALL(nvrtcGetProgramLog)(void *p, char *log)
{
    return memcpy(log, ((program *)p)->log.c_str(), ((program *)p)->log.size() + 1), 0;
}
