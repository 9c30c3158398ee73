#pragma once

// Texts of V8 and ours.

#include <string>
#include <string_view>
#include <v8.h>

namespace spanprof::node {

inline v8::Local<v8::String> NewText(v8::Isolate* isolate, std::string_view text) {
  return v8::String::NewFromUtf8(isolate, text.data(), v8::NewStringType::kNormal,
                                 static_cast<int>(text.size()))
      .FromMaybe(v8::String::Empty(isolate));
}

// Empty for what cannot be made a text.
inline std::string TextOfValue(v8::Isolate* isolate, v8::Local<v8::Value> value) {
  const v8::String::Utf8Value text(isolate, value);
  return *text == nullptr ? std::string() : std::string(*text, static_cast<size_t>(text.length()));
}

}  // namespace spanprof::node
