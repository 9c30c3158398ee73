# The sources of the core that the extension is compiled from. In a packed gem they lie in core/, with a
# list of them; in spanprof's own tree they are where they are, and CMake's files are the list.
# Parses as Ruby 2.1.

class CoreSources
  LIBRARIES = %w[base context profile format export symbols unwind sampling recording].freeze
  # Not part of a library: the C interface of whoever loads it.
  EXTRA = ["src/recording/recording_api.cc"].freeze
  LIST = "sources.txt".freeze

  attr_reader :root

  # nil: there are none.
  def self.find(extension_folder)
    packed = File.join(extension_folder, "core")
    return new(packed) if File.exist?(File.join(packed, LIST))
    tree = File.expand_path("../../../..", extension_folder)
    return new(tree) if File.exist?(File.join(tree, "src", "recording", "CMakeLists.txt"))
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
    LIBRARIES.flat_map { |library| files_of(library) } + EXTRA
  end

  def include_folders
    folders = ["src", "include"]
    folders << "third_party" if packed?
    folders.map { |folder| File.join(root, folder) }
  end

  private

  # From spanprof_library(NAME SOURCES file... LIBRARIES ...), wherever it stands in src/.
  def files_of(library)
    Dir.glob(File.join(root, "src", "*", "CMakeLists.txt")).sort.each do |list|
      text = File.read(list).gsub(/#.*/, "")
      variables = Hash[text.scan(/\bset\((\w+)\s+([^)$]*)\)/)]
      declaration = text[/spanprof_library\(spanprof_#{library}\s+SOURCES\s+(.*?)(?:LIBRARIES|\))/m, 1]
      next unless declaration
      expanded = declaration.gsub(/\$\{(\w+)\}/) { variables.fetch($1) }
      folder = "src/" + File.basename(File.dirname(list))
      return expanded.split.map { |name| "#{folder}/#{name}" }
    end
    raise "CMake knows no library spanprof_#{library}"
  end
end
