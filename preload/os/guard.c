#include "preload/os/guard.h"

__thread int kp_guard __attribute__((tls_model("initial-exec")));
__thread int kp_in_driver __attribute__((tls_model("initial-exec")));
