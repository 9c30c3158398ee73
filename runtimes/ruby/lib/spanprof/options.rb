module Spanprof
  # The option string that every runtime understands, from Ruby's values.
  module Options
    module_function

    #   {cpu: "1ms", attributes: ["http.route", "tenant"], latency: true} -> "cpu=1ms,attributes=http.route;tenant,latency=on"
    def to_text(options)
      options.map { |name, value| words(name.to_s, value) }.flatten.join(",")
    end

    # header: and resource: add up: a Hash is one word for each of its entries.
    def words(name, value)
      case value
      when nil then []
      when true then ["#{name}=on"]
      when false then ["#{name}=off"]
      when Array then ["#{name}=#{value.map { |item| escape(item.to_s) }.join(';')}"]
      when Hash then value.map { |key, item| "#{name}=#{escape(key.to_s)}#{name == 'header' ? ':' : '='}#{escape(item.to_s)}" }
      else ["#{name}=#{escape(value.to_s)}"]
      end
    end

    def escape(text)
      text.gsub(/[,;\\ ]/) { |character| "\\" + character }
    end
  end
end
