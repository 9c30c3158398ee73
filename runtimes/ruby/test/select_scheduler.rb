# A scheduler of fibers that waits by select: the hooks that sleep, reading, writing and Queue need.

class SelectScheduler
  def initialize
    @readers = {}
    @writers = {}
    @sleepers = {} # by fiber, until when
    @ready = []
    @blocked = 0
    @lock = Mutex.new
    @wake_reader, @wake_writer = IO.pipe
  end

  def fiber(&block)
    fiber = Fiber.new(:blocking => false, &block)
    fiber.resume
    fiber
  end

  def io_wait(io, events, timeout)
    @readers[io] = Fiber.current if events & IO::READABLE != 0
    @writers[io] = Fiber.current if events & IO::WRITABLE != 0
    @sleepers[Fiber.current] = now + timeout if timeout
    Fiber.yield
    events
  ensure
    @sleepers.delete(Fiber.current)
    @readers.delete(io)
    @writers.delete(io)
  end

  def kernel_sleep(duration = nil)
    block(:sleep, duration)
  end

  def block(_blocker, timeout = nil)
    @blocked += 1
    @sleepers[Fiber.current] = now + timeout if timeout
    Fiber.yield
    true
  ensure
    @blocked -= 1
    @sleepers.delete(Fiber.current)
  end

  # From any thread.
  def unblock(_blocker, fiber)
    @lock.synchronize { @ready << fiber }
    @wake_writer.write_nonblock("x", :exception => false)
  end

  def close
    run
  end

  private

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def run
    until @readers.empty? && @writers.empty? && @sleepers.empty? && @blocked == 0
      readable, writable = IO.select(@readers.keys + [@wake_reader], @writers.keys, [], timeout)
      readable.to_a.each { |io| io == @wake_reader ? io.read_nonblock(4096, :exception => false) : wake(@readers[io]) }
      writable.to_a.each { |io| wake(@writers[io]) }
      due = @sleepers.select { |_, at| at <= now }.keys
      (due | @lock.synchronize { @ready.slice!(0..-1) }).each { |fiber| wake(fiber) }
    end
  end

  def timeout
    return 0 unless @lock.synchronize { @ready.empty? }
    first = @sleepers.values.min
    first && [first - now, 0].max
  end

  def wake(fiber)
    fiber.resume if fiber && fiber.alive?
  end
end
