# Any target that `zig c++` knows, which brings the target's libc and libc++ with it:
#
#   cmake -DCMAKE_TOOLCHAIN_FILE=cmake/toolchain-zig.cmake
#         -DSPANPROF_ZIG=/path/to/zig -DSPANPROF_ZIG_TARGET=x86_64-linux-musl
#
# SPANPROF_ZIG         the zig program; PyPI's ziglang carries it
# SPANPROF_ZIG_TARGET  CPU-system-ABI, e.g. x86_64-linux-musl, aarch64-macos, x86_64-linux-gnu.2.17
# SPANPROF_ZIG_CACHE   where zig keeps the libraries it compiles; empty for zig's own default

# CMake's own trial compilations read this file too, and get only what is listed here.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SPANPROF_ZIG SPANPROF_ZIG_TARGET
     SPANPROF_ZIG_CACHE SPANPROF_ZIG_WRAPPERS)

if(NOT SPANPROF_ZIG OR NOT SPANPROF_ZIG_TARGET)
  message(FATAL_ERROR "set SPANPROF_ZIG (the zig program) and SPANPROF_ZIG_TARGET (CPU-system-ABI)")
endif()

# CMake wants a compiler and an archiver that are one program each; zig is one program for all.
if(NOT SPANPROF_ZIG_WRAPPERS)
  set(SPANPROF_ZIG_WRAPPERS ${CMAKE_BINARY_DIR}/zig)
  set(spanprof_zig_environment "")
  if(SPANPROF_ZIG_CACHE)
    set(spanprof_zig_environment "export ZIG_GLOBAL_CACHE_DIR='${SPANPROF_ZIG_CACHE}'\n")
  endif()
  foreach(tool cc c++ ar ranlib)
    set(arguments "")
    if(tool MATCHES "^c")
      set(arguments "-target ${SPANPROF_ZIG_TARGET}")
    endif()
    # Written only when it differs: ccache tells compilers apart by their time stamp.
    file(CONFIGURE OUTPUT ${SPANPROF_ZIG_WRAPPERS}/${tool} @ONLY CONTENT
"#!/bin/sh
${spanprof_zig_environment}exec '${SPANPROF_ZIG}' ${tool} ${arguments} \"$@\"
")
    file(CHMOD ${SPANPROF_ZIG_WRAPPERS}/${tool} PERMISSIONS
         OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endforeach()
endif()
set(CMAKE_C_COMPILER ${SPANPROF_ZIG_WRAPPERS}/cc)
set(CMAKE_CXX_COMPILER ${SPANPROF_ZIG_WRAPPERS}/c++)
set(CMAKE_AR ${SPANPROF_ZIG_WRAPPERS}/ar)
set(CMAKE_RANLIB ${SPANPROF_ZIG_WRAPPERS}/ranlib)

string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR "${SPANPROF_ZIG_TARGET}")
if(SPANPROF_ZIG_TARGET MATCHES "macos")
  set(CMAKE_SYSTEM_NAME Darwin)
  set(CMAKE_OSX_SYSROOT "")  # zig has its own; CMake would ask Xcode.
  # In zig 0.17 macOS's math.h includes a part of float.h, after which libc++ thinks that it has all
  # of it and FLT_MAX is missing. Whoever includes it first gets it whole.
  set(CMAKE_CXX_FLAGS_INIT "-include float.h")
else()
  set(CMAKE_SYSTEM_NAME Linux)
endif()

# Nothing of this machine is for the target.
set(CMAKE_FIND_ROOT_PATH ${SPANPROF_ZIG_WRAPPERS})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
