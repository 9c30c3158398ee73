# The sources of the core that the extension is compiled from. In a packed gem they lie in core/, with a
# list of them; in spanprof's own tree they are where they are, and tools/core_sources is the list.
# Parses as Ruby 2.1.

class CoreSources
  LIST = "sources.txt".freeze
  LISTING = "tools/core_sources".freeze

  attr_reader :root

  # nil: there are none.
  def self.find(extension_folder)
    packed = File.join(extension_folder, "core")
    return new(packed) if File.exist?(File.join(packed, LIST))
    tree = File.expand_path("../../../..", extension_folder)
    return new(tree) if File.exist?(File.join(tree, LISTING))
    nil
  end

  def initialize(root)
    @root = root
  end

  def packed?
    File.exist?(File.join(root, LIST))
  end

  # Relative to root.
  def files
    return File.read(File.join(root, LIST)).split("\n") if packed?
    list = IO.popen([File.join(root, LISTING)], &:read)
    raise "#{LISTING} could not list the core's sources" unless $?.success?
    list.split("\n")
  end

  def include_folders
    folders = ["src", "include"]
    folders << "third_party" if packed?
    folders.map { |folder| File.join(root, folder) }
  end
end
