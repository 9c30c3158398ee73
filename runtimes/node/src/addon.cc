// What ts/binding.ts declares: the calls of JavaScript, and where Node.js comes in.

#include <cstdint>
#include <map>
#include <node.h>
#include <string>
#include <string_view>
#include <v8.h>

#include "attribute_names.h"
#include "profile_signal.h"
#include "thread_environment.h"
#include "v8_text.h"

namespace spanprof::node {
namespace {

using Arguments = v8::FunctionCallbackInfo<v8::Value>;

ThreadEnvironment& EnvironmentOf(const Arguments& arguments) {
  const v8::Local<v8::External> data = arguments.Data().As<v8::External>();
#if V8_MAJOR_VERSION >= 14
  return *static_cast<ThreadEnvironment*>(data->Value(v8::kExternalPointerTypeTagDefault));
#else
  return *static_cast<ThreadEnvironment*>(data->Value());
#endif
}

void Throw(v8::Isolate* isolate, std::string_view text) {
  isolate->ThrowException(v8::Exception::Error(NewText(isolate, text)));
}

// False, and thrown: it is no function, or no object.
bool IsFunction(v8::Isolate* isolate, v8::Local<v8::Value> value) {
  if (value->IsFunction()) return true;
  Throw(isolate, "a function is expected");
  return false;
}

std::vector<ResourceAttribute> RuntimeAttributes() {
  return {{"process.runtime.name", "nodejs"},
          {"process.runtime.version", NODE_VERSION},
          {"telemetry.sdk.language", "nodejs"}};
}

void Start(const Arguments& arguments) {
  ThreadEnvironment& environment = EnvironmentOf(arguments);
  const Result<void> started = ProcessRecording::Instance().Start(
      TextOfValue(environment.isolate(), arguments[0]), RuntimeAttributes());
  if (!started) {
    Throw(environment.isolate(), TextOf(started.error()));
    return;
  }
  environment.Follow(true);
}

void Stop(const Arguments& arguments) {
  ThreadEnvironment& environment = EnvironmentOf(arguments);
  if (!IsFunction(environment.isolate(), arguments[0])) return;
  const uint64_t ticket = environment.NewTicket(arguments[0].As<v8::Function>());
  ProcessRecording::Instance().Stop(&environment, ticket);
  environment.Follow(true);
}

void StopSync(const Arguments& arguments) {
  ThreadEnvironment& environment = EnvironmentOf(arguments);
  environment.Leave(true);
  ProcessRecording::Instance().StopAndWait();
  environment.Rejoin();
}

void Dump(const Arguments& arguments) {
  ThreadEnvironment& environment = EnvironmentOf(arguments);
  if (!IsFunction(environment.isolate(), arguments[1])) return;
  const uint64_t ticket = environment.NewTicket(arguments[1].As<v8::Function>());
  ProcessRecording::Instance().Dump(&environment, ticket,
                                    TextOfValue(environment.isolate(), arguments[0]));
}

void Recording(const Arguments& arguments) {
  arguments.GetReturnValue().Set(ProcessRecording::Instance().settings().running);
}

void Join(const Arguments& arguments) {
  ThreadEnvironment& environment = EnvironmentOf(arguments);
  environment.Join(TextOfValue(environment.isolate(), arguments[0]));
}

void Leave(const Arguments& arguments) { EnvironmentOf(arguments).Leave(true); }

void CutNow(const Arguments& arguments) { EnvironmentOf(arguments).Cut(true); }

// (storage, probe): inside storage.run(probe, ...). Whether frames can be read; status() says why.
void UseOwnStorage(const Arguments& arguments) {
  ThreadEnvironment& environment = EnvironmentOf(arguments);
  const Result<void> used = environment.UseOwnStorage(arguments[0].As<v8::Object>(), arguments[1]);
  arguments.GetReturnValue().Set(used.has_value());
}

// (storage, probe, read): inside storage.run(probe, ...).
void Attach(const Arguments& arguments) {
  ThreadEnvironment& environment = EnvironmentOf(arguments);
  if (!IsFunction(environment.isolate(), arguments[2])) return;
  const Result<void> attached = environment.Attach(arguments[0].As<v8::Object>(), arguments[1],
                                                   arguments[2].As<v8::Function>());
  if (!attached) Throw(environment.isolate(), TextOf(attached.error()));
}

void AttachSlot(const Arguments& arguments) {
  ThreadEnvironment& environment = EnvironmentOf(arguments);
  if (!IsFunction(environment.isolate(), arguments[0])) return;
  environment.AttachSlot(arguments[0].As<v8::Function>());
}

void Detach(const Arguments& arguments) { EnvironmentOf(arguments).Detach(); }

void UseContextCopies(const Arguments& arguments) {
  if (!arguments[0]->IsObject()) return;
  EnvironmentOf(arguments).UseContextCopies(arguments[0].As<v8::Object>());
}

void SetSlot(const Arguments& arguments) { EnvironmentOf(arguments).SetSlot(arguments[0]); }

// A text of JavaScript in memory of ours, without asking for any.
class ShortText {
 public:
  // False: it is no text, or too long for what it stands for.
  bool Read(v8::Isolate* isolate, v8::Local<v8::Value> value) {
    if (value->IsUndefined()) return true;
    if (!value->IsString()) return false;
    const v8::Local<v8::String> text = value.As<v8::String>();
    if (text->Length() > static_cast<int>(sizeof characters_)) return false;
    // Only the lower byte of each character is written.
    if (!text->IsOneByte() && !text->ContainsOnlyOneByte()) return false;
#if V8_MAJOR_VERSION >= 13
    text->WriteOneByteV2(isolate, 0, static_cast<uint32_t>(text->Length()), characters_);
#else
    text->WriteOneByte(isolate, characters_, 0, text->Length(), v8::String::NO_NULL_TERMINATION);
#endif
    length_ = static_cast<size_t>(text->Length());
    return true;
  }
  std::string_view view() const { return {reinterpret_cast<const char*>(characters_), length_}; }

 private:
  uint8_t characters_[32];
  size_t length_ = 0;
};

bool ReadIds(const Arguments& arguments, ContextFields* fields) {
  v8::Isolate* const isolate = arguments.GetIsolate();
  ShortText trace;
  ShortText span;
  ShortText root;
  if (!trace.Read(isolate, arguments[0]) ||
      !ParseTraceId(trace.view(), &fields->trace_id_high, &fields->trace_id_low)) {
    Throw(isolate, "traceId is not 32 hexadecimal digits");
    return false;
  }
  if (!span.Read(isolate, arguments[1]) || !ParseSpanId(span.view(), &fields->span_id)) {
    Throw(isolate, "spanId is not 16 hexadecimal digits");
    return false;
  }
  if (!root.Read(isolate, arguments[2]) || !ParseSpanId(root.view(), &fields->root_span_id)) {
    Throw(isolate, "rootSpanId is not 16 hexadecimal digits");
    return false;
  }
  return true;
}

// Fills the tags from [name, value, ...]; the texts stay in `texts`.
bool ReadTags(ThreadEnvironment& environment, v8::Local<v8::Context> context,
              v8::Local<v8::Value> list, std::vector<std::string>* texts, ContextFields* fields) {
  if (!list->IsArray()) return true;
  const v8::Local<v8::Array> array = list.As<v8::Array>();
  const uint32_t length = array->Length();
  texts->reserve(length);
  for (uint32_t i = 0; i + 1 < length; i += 2) {
    v8::Local<v8::Value> name;
    v8::Local<v8::Value> value;
    if (!array->Get(context, i).ToLocal(&name) || !array->Get(context, i + 1).ToLocal(&value)) {
      return false;
    }
    const int position =
        AttributeNames::Instance().PositionOf(TextOfValue(environment.isolate(), name));
    if (position < 0) {
      ++environment.store_counts().tags_without_position;
      continue;
    }
    texts->push_back(TextOfValue(environment.isolate(), value));
    fields->tags[static_cast<size_t>(position)] = texts->back();
  }
  return true;
}

// (traceId, spanId, rootSpanId, endpoint, tags)
void NewContext(const Arguments& arguments) {
  ThreadEnvironment& environment = EnvironmentOf(arguments);
  v8::Isolate* const isolate = environment.isolate();
  ContextFields fields;
  if (!ReadIds(arguments, &fields)) return;
  const v8::Local<v8::Context> context = isolate->GetCurrentContext();
  std::string endpoint;
  std::vector<std::string> tags;
  if (arguments[3]->IsString()) {
    endpoint = TextOfValue(isolate, arguments[3]);
    fields.endpoint = endpoint;
  }
  if (!ReadTags(environment, context, arguments[4], &tags, &fields)) return;
  v8::Local<v8::Object> object;
  if (environment.NewContext(context, fields).ToLocal(&object)) {
    arguments.GetReturnValue().Set(object);
  }
}

void SetEndpoint(const Arguments& arguments) {
  v8::Isolate* const isolate = arguments.GetIsolate();
  uint64_t root = 0;
  if (!ParseSpanId(TextOfValue(isolate, arguments[0]), &root)) {
    Throw(isolate, "rootSpanId is not 16 hexadecimal digits");
    return;
  }
  ProcessRecording::Instance().SetEndpoint(root, TextOfValue(isolate, arguments[1]));
}

void SetSourceMapper(const Arguments& arguments) {
  ThreadEnvironment& environment = EnvironmentOf(arguments);
  if (arguments[0]->IsFunction()) {
    environment.positions().UseMapper(environment.isolate(), arguments[0].As<v8::Function>());
  } else {
    environment.positions().Reset();
  }
}

const char* NameOf(ContextWay way) {
  switch (way) {
    case ContextWay::kFrame:
      return "async-context-frame";
    case ContextWay::kSlot:
      return "atomic-slot";
    case ContextWay::kNone:
      break;
  }
  return "none";
}

void Status(const Arguments& arguments) {
  ThreadEnvironment& environment = EnvironmentOf(arguments);
  v8::Isolate* const isolate = environment.isolate();
  const v8::Local<v8::Context> context = isolate->GetCurrentContext();
  const auto set = [&](v8::Local<v8::Object> object, const char* name, v8::Local<v8::Value> value) {
    object->Set(context, NewText(isolate, name), value).Check();
  };
  const auto number = [isolate](uint64_t value) {
    return v8::Number::New(isolate, static_cast<double>(value));
  };
  const v8::Local<v8::Object> counters = v8::Object::New(isolate);
  std::map<std::string, uint64_t> values = ProcessRecording::Instance().counters();
  values["node.foreign_signals"] = ForeignSignals();
  for (const auto& [name, value] : values) set(counters, name.c_str(), number(value));
  const v8::Local<v8::Object> status = v8::Object::New(isolate);
  set(status, "recording",
      v8::Boolean::New(isolate, ProcessRecording::Instance().settings().running));
  set(status, "sampling", v8::Boolean::New(isolate, environment.sampling()));
  set(status, "way", NewText(isolate, NameOf(environment.way())));
  set(status, "reason", NewText(isolate, environment.way_reason()));
  set(status, "outsideReaders", NewText(isolate, environment.outside_readers()));
  set(status, "liveContexts", number(environment.contexts().live()));
  set(status, "counters", counters);
  arguments.GetReturnValue().Set(status);
}

void SetMethod(v8::Local<v8::Context> context, v8::Local<v8::Object> exports,
               v8::Local<v8::Value> data, const char* name, v8::FunctionCallback callback) {
  v8::Isolate* const isolate = v8::Isolate::GetCurrent();
  const v8::Local<v8::FunctionTemplate> function =
      v8::FunctionTemplate::New(isolate, callback, data);
  exports->Set(context, NewText(isolate, name), function->GetFunction(context).ToLocalChecked())
      .Check();
}

void Initialise(v8::Local<v8::Object> exports, v8::Local<v8::Context> context) {
  v8::Isolate* const isolate = v8::Isolate::GetCurrent();
  ThreadEnvironment* const environment = ThreadEnvironment::Make(isolate, context);
  if (environment == nullptr) {
    Throw(isolate, "this thread has no event loop to work with");
    return;
  }
  const v8::Local<v8::Value> data = v8::External::New(isolate, environment);
  const std::pair<const char*, v8::FunctionCallback> methods[] = {
      {"start", Start},
      {"stop", Stop},
      {"stopSync", StopSync},
      {"dump", Dump},
      {"recording", Recording},
      {"join", Join},
      {"leave", Leave},
      {"cut", CutNow},
      {"useOwnStorage", UseOwnStorage},
      {"attach", Attach},
      {"attachSlot", AttachSlot},
      {"detach", Detach},
      {"useContextCopies", UseContextCopies},
      {"setSlot", SetSlot},
      {"newContext", NewContext},
      {"setEndpoint", SetEndpoint},
      {"setSourceMapper", SetSourceMapper},
      {"status", Status},
  };
  for (const auto& [name, callback] : methods) SetMethod(context, exports, data, name, callback);
}

}  // namespace
}  // namespace spanprof::node

NODE_MODULE_INIT() { spanprof::node::Initialise(exports, context); }
