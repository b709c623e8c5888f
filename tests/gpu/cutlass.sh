#!/usr/bin/env bash
# Builds examples of CUTLASS for full.sh, on any machine with nvcc; a minute for each on two cores.
#   tests/gpu/cutlass.sh CHECKOUT FOLDER     CHECKOUT: of NVIDIA/cutlass, with include, tools/util and examples. FOLDER: gets the
#   programs, for CUTLASS_EXAMPLES
set -u
checkout=$1
stubs=${CUDA_HOME:-/usr/local/cuda}/lib64/stubs # a machine without a GPU has no other libcuda
mkdir -p "$2" || exit 1
folder=$(cd "$2" && pwd)
failures=0

example() { # ARCH FILE
    local name=${2##*/}
    name=${name%.cu}
    nvcc -std=c++17 -O2 -arch="$1" --expt-relaxed-constexpr -I"$checkout/include" -I"$checkout/tools/util/include" \
        -I"$checkout/examples/common" -o "$folder/$name" "$checkout/examples/$2" -L"$stubs" -lcuda 2>"$folder/$name.log" && rm "$folder/$name.log" ||
        { echo "FAILED: $2: $(grep -m 1 error "$folder/$name.log")" && failures=$((failures + 1)); }
}

example sm_90 00_basic_gemm/basic_gemm.cu
example sm_90 06_splitK_gemm/splitk_gemm.cu
example sm_90 14_ampere_tf32_tensorop_gemm/ampere_tf32_tensorop_gemm.cu
example sm_90 15_ampere_sparse_tensorop_gemm/ampere_sparse_tensorop_gemm.cu
example sm_90 16_ampere_tensorop_conv2dfprop/ampere_tensorop_conv2dfprop.cu
example sm_90 24_gemm_grouped/gemm_grouped.cu
example sm_90a 48_hopper_warp_specialized_gemm/48_hopper_warp_specialized_gemm.cu
example sm_90a 54_hopper_fp8_warp_specialized_gemm/54_hopper_fp8_warp_specialized_gemm.cu
echo "$failures failures"
[ $failures -eq 0 ]
