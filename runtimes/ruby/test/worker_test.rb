require_relative "child_program"
require_relative "pprof_profile"
require "net/http"
require "socket"

# Servers and job runners that fork, and reports that are under way when they do.
class WorkerTest < Minitest::Test
  include ChildProgram

  # By method, nanoseconds.
  def work_in(profile)
    index = profile.value_types.index("cpu")
    profile.samples.each_with_object(Hash.new(0)) do |sample, work|
      method = sample.frames.map { |frame| frame.name[/(parents|childs)_work/] }.compact.first
      work[method] += sample.values[index] if method
    end
  end

  # Takes reports, and answers each only after a while. Yields its address; returns what was posted.
  def slow_server(seconds)
    server = TCPServer.new("127.0.0.1", 0)
    bodies = Queue.new
    accepting = Thread.new do
      loop { Thread.new(server.accept) { |client| answer_late(client, seconds, bodies) } }
    end
    yield "http://127.0.0.1:#{server.addr[1]}/"
    Array.new(bodies.size) { bodies.pop }
  ensure
    accepting.kill if accepting
    server.close if server
  end

  def answer_late(client, seconds, bodies)
    client.gets
    length = 0
    while (line = client.gets) && line != "\r\n"
      length = line[/\d+/].to_i if line =~ /\Acontent-length:/i
    end
    bodies << client.read(length)
    sleep seconds
    client.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
  rescue SystemCallError, IOError
    nil # The reporter did not wait.
  ensure
    client.close
  end

  def test_a_fork_in_the_middle_of_a_report_leaves_both_right
    used = nil
    bodies = slow_server(1.5) do |address|
      used = run_program(BURN + <<-RUBY)
        Spanprof.start(cpu: "1ms", every: "1s", to: "pprof+#{address}")
        parents_work(1.3) # A report has been on its way since 1.0.
        children = (1..3).map { fork { childs_work } }
        parents_work(0.5)
        failed = children.map { |pid| Process.wait2(pid)[1] }.reject(&:success?)
        abort failed.inspect unless failed.empty?
        Spanprof.stop
        puts Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
      RUBY
    end
    works = bodies.map { |body| work_in(PprofProfile.new(Zlib.gunzip(body))) }
    mixed = works.select { |work| work.size > 1 }
    assert_empty mixed, "a child's report has the parent's samples"
    # Twice would be more than was used.
    assert_in_delta 1_200_000_000, works.sum { |work| work["childs_work"] }, 300_000_000, works.inspect
    parents = works.sum { |work| work["parents_work"] }
    assert_operator parents, :>, 1_000_000_000
    assert_operator parents, :<=, used.to_i * 11 / 10
  end

  def files_of(folder)
    Dir.glob(File.join(folder, "*.pb.gz")).map { |file| work_in(PprofProfile.read(file)).keys }
  end

  # As Resque does it: a child for each job, which ends by exit!.
  def test_workers_that_leave_at_once_still_write_their_profiles
    in_folder do |folder|
      run_program(BURN + <<-RUBY)
        Spanprof.start(cpu: "1ms", file: "#{folder}/p-%p.pb.gz")
        parents_work
        3.times { |i| Process.wait(fork { childs_work; i == 0 ? exit!(0) : i == 1 ? Process.exit!(true) : Kernel.exit!(true) }) }
        abort $?.inspect unless $?.success?
      RUBY
      assert_equal [["childs_work"], ["childs_work"], ["childs_work"], ["parents_work"]], files_of(folder).sort
    end
  end

  # A real cluster of puma's: the program is loaded, workers are forked, each answers with threads. Workers write what they have got
  # when they answer: those of puma 6 on Ruby 3.3 often hang when they are told to end, with and without us.
  def test_puma_workers_are_recorded_each
    puma = Gem.bin_path("puma", "puma") rescue nil
    skip "there is no puma (Debian: puma)" unless puma
    in_folder do |folder|
      File.write(File.join(folder, "config.ru"), BURN + <<-'RUBY')
        parents_work # Once, while the master loads the program.
        run(lambda do |environment|
          id = environment["QUERY_STRING"].to_i
          Spanprof.with_context(span_id: id) { childs_work(0.2) }
          Spanprof.dump("p-#{Process.pid}-#{id}.pb.gz")
          [200, {"content-type" => "text/plain"}, [Process.pid.to_s]]
        end)
      RUBY
      File.write(File.join(folder, "puma.rb"), "worker_shutdown_timeout 2\n")
      socket = File.join(folder, "puma.sock")
      environment = {"SPANPROF" => "cpu=1ms,file=#{folder}/p-%p.pb.gz"}
      command = ruby("-rspanprof/auto", puma, "--workers", "2", "--threads", "2:2", "--preload", "--bind", "unix://#{socket}",
                     "--environment", "production", "--quiet", "--config", "puma.rb", "config.ru")
      Open3.popen2e(environment, *command, :chdir => folder) do |_input, output, server|
        log = Thread.new { output.read }
        pids = (1..8).map { |id| Thread.new { ask(socket, id) } }.map(&:value)
        Process.kill(:TERM, server.pid)
        ended = server.join(60)
        Process.kill(:KILL, server.pid) unless ended
        assert ended, log.value
        profiles = Dir.glob(File.join(folder, "p-*.pb.gz")).group_by { |file| file[/p-(\d+)/, 1] }
        profiles.transform_values! { |files| files.map { |file| PprofProfile.read(file) } }
        work = profiles.transform_values { |of_process| of_process.flat_map { |profile| work_in(profile).keys }.uniq }
        assert_equal [["parents_work"]], work.reject { |pid, _| pids.include?(pid) }.values, log.value
        assert_equal pids.uniq.sort, work.select { |_, methods| methods == ["childs_work"] }.keys.sort
        assert_equal (1..8).to_a, spans_of(profiles.values_at(*pids.uniq).flatten)
      end
    end
  end

  # Waits until somebody listens.
  def ask(path, id)
    tries = 0
    begin
      UNIXSocket.open(path) do |socket|
        socket.write("GET /?#{id} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        socket.read[/\d+\z/]
      end
    rescue Errno::ENOENT, Errno::ECONNREFUSED
      raise if (tries += 1) > 600
      sleep 0.05
      retry
    end
  end

  def spans_of(profiles)
    profiles.flat_map(&:samples).select { |sample| sample.frames.any? { |frame| frame.name.include?("childs_work") } }
            .map { |sample| sample.labels["span_id"].to_i(16) }.uniq.sort
  end
end
