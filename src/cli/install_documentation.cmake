# Run by `cmake --install`, with the built command in `command` and the folders, relative to the prefix,
# in `mandir` and `datadir`.

set(prefix "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
execute_process(COMMAND ${command} man --folder "${prefix}/${mandir}/man1"
                COMMAND_ERROR_IS_FATAL ANY)
foreach(shell_and_file
        "bash|bash-completion/completions/spanprof"
        "zsh|zsh/site-functions/_spanprof"
        "fish|fish/vendor_completions.d/spanprof.fish")
  string(REPLACE "|" ";" pair "${shell_and_file}")
  list(GET pair 0 shell)
  list(GET pair 1 file)
  execute_process(COMMAND ${command} completion ${shell}
                  OUTPUT_VARIABLE script COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE "${prefix}/${datadir}/${file}" "${script}")
endforeach()
message(STATUS "Installed man pages and shell completion below ${prefix}")
