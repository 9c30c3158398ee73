# Reads a pprof file, by nothing that spanprof has: a decoder of protobuf's wire format, and the fields of
# profile.proto that the tests look at.

require "zlib"

class PprofProfile
  Sample = Struct.new(:frames, :values, :labels)

  # Of the innermost frame first.
  Frame = Struct.new(:name, :file, :line)

  attr_reader :samples, :comments, :value_types

  def self.read(path)
    new(Zlib::GzipReader.open(path, &:read))
  end

  def initialize(bytes)
    message = fields(bytes)
    @strings = message[6].map { |text| text.dup.force_encoding("UTF-8") }
    @functions = by_id(message[5]) { |f| [text(f[2]), text(f[4])] }
    @locations = by_id(message[4]) { |location| frames_of(location) }
    @value_types = message[1].map { |type| text(fields(type)[1]) }
    @comments = message[13].flat_map { |value| numbers([value]) }.map { |number| @strings[number] }
    @samples = message[2].map { |sample| sample_of(fields(sample)) }
  end

  # What the comments say of a counter; 0 if they do not.
  def counter(name)
    line = @comments.find { |comment| comment =~ /\b#{Regexp.escape(name)}\b/ }
    line ? line[/(\d+)\s*\z/, 1].to_i : 0
  end

  private

  def text(values)
    @strings[values.first || 0]
  end

  def by_id(messages)
    Hash[messages.map { |message| fields(message) }.map { |f| [f[1].first, yield(f)] }]
  end

  def frames_of(location)
    location[4].map do |line|
      line = fields(line)
      name, file = @functions[line[1].first]
      Frame.new(name, file, line[2].first)
    end
  end

  def sample_of(sample)
    labels = Hash[sample[3].map { |label| fields(label) }.map do |label|
      [text(label[1]), label[2].empty? ? label[3].first : text(label[2])]
    end]
    Sample.new(numbers(sample[1]).flat_map { |id| @locations.fetch(id, []) }, numbers(sample[2]), labels)
  end

  # A repeated number is packed into one field, or stands in several.
  def numbers(values)
    values.flat_map do |value|
      next [value] unless value.is_a?(String)
      all = []
      position = 0
      while position < value.bytesize
        number, position = varint(value, position)
        all << number
      end
      all
    end
  end

  def varint(bytes, position)
    number = shift = 0
    loop do
      byte = bytes.getbyte(position)
      position += 1
      number |= (byte & 0x7f) << shift
      shift += 7
      return number, position if byte < 0x80
    end
  end

  # By number, each a list.
  def fields(bytes)
    found = Hash.new { |hash, key| hash[key] = [] }
    position = 0
    while position < bytes.bytesize
      key, position = varint(bytes, position)
      case key & 7
      when 0
        value, position = varint(bytes, position)
      when 1
        value = bytes.byteslice(position, 8).unpack1("q<")
        position += 8
      when 2
        length, position = varint(bytes, position)
        value = bytes.byteslice(position, length)
        position += length
      else
        raise "wire type #{key & 7}"
      end
      found[key >> 3] << value
    end
    found
  end
end
