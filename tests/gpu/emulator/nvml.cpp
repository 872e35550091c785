/* What lucid.cuda asks of NVIDIA's management library, about one device that is warm and half busy.   g++ -shared -fPIC */
#include <cstring>

#define CALL(name) extern "C" int name
static int device;
CALL(nvmlInit_v2)() { return 0; }
extern "C" const char *nvmlErrorString(int) { return "Not Found"; }
CALL(nvmlDeviceGetHandleByPciBusId_v2)(const char *place, void **handle)
{
    return *handle = &device, strcmp(place, "00000000:00:00.0") ? 6 : 0;
}
CALL(nvmlDeviceGetUtilizationRates)(void *d, unsigned load[2]) { return load[0] = 50, load[1] = 25, d == &device ? 0 : 6; }
CALL(nvmlDeviceGetTemperature)(void *, int sensor, unsigned *degrees) { return *degrees = 41, sensor; }
CALL(nvmlDeviceGetPowerUsage)(void *, unsigned *milliwatts) { return *milliwatts = 98765, 0; }
CALL(nvmlDeviceGetClockInfo)(void *, int clock, unsigned *mhz) { return *mhz = 1980, clock != 1; }
