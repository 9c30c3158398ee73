# GoogleTest: the installed library for the machine's own compiler, its sources for a cross compiler
# (SPANPROF_GTEST_SOURCE=/usr/src/googletest), which Debian's googletest package carries.

include(GoogleTest)
set(SPANPROF_GTEST_SOURCE "" CACHE PATH "Build GoogleTest from these sources instead")

add_library(spanprof_gtest_main INTERFACE)
if(SPANPROF_GTEST_SOURCE)
  set(BUILD_GMOCK ON CACHE BOOL "" FORCE)
  set(INSTALL_GTEST OFF CACHE BOOL "" FORCE)
  add_subdirectory(${SPANPROF_GTEST_SOURCE} ${PROJECT_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
  target_link_libraries(spanprof_gtest_main INTERFACE gmock gtest gtest_main Threads::Threads)
else()
  find_package(GTest REQUIRED)
  target_link_libraries(spanprof_gtest_main INTERFACE GTest::gmock GTest::gtest GTest::gtest_main
                                                      Threads::Threads)
endif()

# Property tests: only where librapidcheck is installed, that is not in cross builds.
set(SPANPROF_HAVE_RAPIDCHECK OFF)
if(NOT SPANPROF_GTEST_SOURCE)
  find_library(SPANPROF_RAPIDCHECK rapidcheck)
  if(SPANPROF_RAPIDCHECK)
    set(SPANPROF_HAVE_RAPIDCHECK ON)
    add_library(spanprof_rapidcheck INTERFACE)
    target_link_libraries(spanprof_rapidcheck INTERFACE ${SPANPROF_RAPIDCHECK})
  endif()
endif()
