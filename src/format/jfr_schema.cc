#include "format/jfr_schema.h"

#include <algorithm>
#include <set>
#include <utility>

#include "profile/names.h"

namespace spanprof::format::jfr {
namespace {

// Types without pools, the same in every chunk.
enum FixedId : uint64_t {
  kBooleanId = 16,
  kIntId,
  kLongId,
  kStackFrameId,
  kClassLoaderId,
  kPackageId,
  kThreadGroupId,
  kLabelId,
  kCategoryId,
  kTimestampId,
  kTimespanId,
  kDataAmountId,
  kMemoryAddressId,
};

constexpr std::string_view kOurCategory = "spanprof";

// "http.route" becomes "http_route". What is not ASCII stays.
std::string FieldNameOf(std::string_view attribute) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<uint8_t>(c) >= 0x80;
  };
  std::string name;
  if (!attribute.empty() && is_digit(attribute.front())) name = "_";
  for (const char c : attribute) name += is_digit(c) || is_letter(c) ? c : '_';
  return name;
}

class SchemaMaker {
 public:
  SchemaMaker(const profile::Profile& profile, JfrContext context)
      : profile_(profile), context_(context), attribute_count_(AttributeCount(profile)) {}

  Schema Make() {
    AddPrimitives();
    AddAnnotations();
    AddJdkPools();
    AddOurPools();
    AddSampleEvents();
    AddOtherEvents();
    return std::move(schema_);
  }

 private:
  Field Boolean(std::string_view name, std::string_view label = {}) const {
    return {.name = name, .label = label, .type_id = kBooleanId};
  }
  Field Int(std::string_view name, std::string_view label = {}) const {
    return {.name = name, .label = label, .type_id = kIntId};
  }
  Field Long(std::string_view name, std::string_view label = {}, Unit unit = Unit::kNone) const {
    return {.name = name, .label = label, .type_id = kLongId, .unit = unit};
  }
  Field String(std::string_view name, std::string_view label = {}) const {
    return {.name = name, .label = label, .type_id = IdOf(Pool::kString)};
  }
  Field Pooled(std::string_view name, Pool pool, std::string_view label = {}) const {
    return {.name = name, .label = label, .type_id = IdOf(pool), .pooled = true};
  }
  Field PooledFixed(std::string_view name, uint64_t type, std::string_view label = {}) const {
    return {.name = name, .label = label, .type_id = type, .pooled = true};
  }
  Field ExtensionSize() const { return Int("extensionSize", "Size of the Fields from Here on"); }
  Field StartTime() const { return Long("startTime", "Start Time", Unit::kTimestampTicks); }

  void Add(std::string_view name, uint64_t id, std::vector<Field> fields, bool simple = false) {
    schema_.types.push_back(
        {.name = name, .id = id, .simple = simple, .fields = std::move(fields)});
  }
  void AddEvent(std::string_view name, EventId id, std::string_view label,
                std::vector<Field> fields, std::string_view category = kOurCategory) {
    schema_.types.push_back({.name = name,
                             .id = id,
                             .super_type = kEventSuperType,
                             .label = label,
                             .category = category,
                             .fields = std::move(fields)});
  }
  void AddAnnotation(std::string_view name, uint64_t id, std::vector<Field> fields) {
    schema_.types.push_back(
        {.name = name, .id = id, .super_type = kAnnotationSuperType, .fields = std::move(fields)});
  }

  void AddPrimitives() {
    Add("boolean", kBooleanId, {});
    Add("int", kIntId, {});
    Add("long", kLongId, {});
    Add("java.lang.String", IdOf(Pool::kString), {});
  }

  void AddAnnotations() {
    AddAnnotation("jdk.jfr.Label", kLabelId, {String("value")});
    Field values = String("value");
    values.array = true;
    AddAnnotation("jdk.jfr.Category", kCategoryId, {values});
    AddAnnotation("jdk.jfr.Timestamp", kTimestampId, {String("value")});
    AddAnnotation("jdk.jfr.Timespan", kTimespanId, {String("value")});
    AddAnnotation("jdk.jfr.DataAmount", kDataAmountId, {String("value")});
    AddAnnotation("jdk.jfr.MemoryAddress", kMemoryAddressId, {});
  }

  void AddJdkPools() {
    Add("jdk.types.Symbol", IdOf(Pool::kSymbol), {String("string")}, true);
    Add("java.lang.Class", IdOf(Pool::kClass),
        {PooledFixed("classLoader", kClassLoaderId), Pooled("name", Pool::kSymbol),
         PooledFixed("package", kPackageId), Int("modifiers")});
    Add("jdk.types.ClassLoader", kClassLoaderId,
        {Pooled("type", Pool::kClass), Pooled("name", Pool::kSymbol)});
    Add("jdk.types.Package", kPackageId, {Pooled("name", Pool::kSymbol)});
    Add("java.lang.Thread", IdOf(Pool::kThread),
        {String("osName", "OS Thread Name"), Long("osThreadId", "OS Thread Id"),
         String("javaName", "Java Thread Name"), Long("javaThreadId", "Java Thread Id"),
         PooledFixed("group", kThreadGroupId, "Java Thread Group")});
    Add("jdk.types.ThreadGroup", kThreadGroupId,
        {PooledFixed("parent", kThreadGroupId), String("name")});
    Add("jdk.types.ThreadState", IdOf(Pool::kThreadState), {String("name")}, true);
    Add("jdk.types.FrameType", IdOf(Pool::kFrameType), {String("description")}, true);
    Add("jdk.types.Method", IdOf(Pool::kMethod),
        {Pooled("type", Pool::kClass), Pooled("name", Pool::kSymbol),
         Pooled("descriptor", Pool::kSymbol), Int("modifiers"), Boolean("hidden")});
    Add("jdk.types.StackTrace", IdOf(Pool::kStackTrace),
        {Boolean("truncated"),
         {.name = "frames", .label = {}, .type_id = kStackFrameId, .array = true}});
    Add("jdk.types.StackFrame", kStackFrameId,
        {Pooled("method", Pool::kMethod, "Java Method"), Int("lineNumber", "Line Number"),
         Int("bytecodeIndex", "Bytecode Index"), Pooled("type", Pool::kFrameType, "Frame Type")});
  }

  void AddOurPools() {
    Add("spanprof.FrameKind", IdOf(Pool::kFrameKind), {String("name")}, true);
    Add(kFunctionName, IdOf(Pool::kFunction),
        {Pooled("name", Pool::kSymbol), Pooled("systemName", Pool::kSymbol),
         Pooled("file", Pool::kSymbol), Int("startLine")});
    Add(kMappingName, IdOf(Pool::kMapping),
        {Long("start", {}, Unit::kAddress), Long("end", {}, Unit::kAddress), Long("fileOffset"),
         Pooled("path", Pool::kSymbol), Pooled("buildId", Pool::kSymbol)});
    Add(kFrameName, IdOf(Pool::kFrame),
        {Pooled("kind", Pool::kFrameKind), Boolean("inlined"), Pooled("mapping", Pool::kMapping),
         Long("address", {}, Unit::kAddress), Pooled("function", Pool::kFunction), Int("column")});
    if (context_ == JfrContext::kPool) {
      Add(kValueName, IdOf(Pool::kValue),
          {Long("nanoseconds", "Time", Unit::kTimespanNs), Boolean("folded", "Folded")});
      std::vector<Field> fields;
      AddContextFields(fields);
      Add(kContextName, IdOf(Pool::kContext), std::move(fields));
    }
  }

  // The ids, the endpoint, and a string for each attribute, whose name is the field's label. The
  // field's own name is made of it: the JDK takes a dot in a name for a step into a structure, so
  // getString("context.http.route") would not find it.
  void AddContextFields(std::vector<Field>& fields) {
    fields.push_back(Long("spanId", "Span Id"));
    fields.push_back(Long("localRootSpanId", "Local Root Span Id"));
    fields.push_back(String("traceId", "Trace Id"));
    fields.push_back(String(kEndpointField, "Endpoint"));
    std::set<std::string_view> taken;
    for (const Field& field : fields) taken.insert(field.name);
    for (unsigned i = 0; i < attribute_count_; ++i) {
      const std::string& label = schema_.names.emplace_back(profile::TagName(profile_, i));
      std::string_view name = schema_.names.emplace_back(FieldNameOf(label));
      while (name.empty() || taken.contains(name)) {
        name = schema_.names.emplace_back(std::string(name) + "_" + std::to_string(i));
      }
      taken.insert(name);
      fields.push_back(String(name, label));
    }
  }

  void AddContextTo(std::vector<Field>& fields) {
    if (context_ == JfrContext::kPool) {
      fields.push_back(Pooled("context", Pool::kContext, "Context"));
    } else {
      AddContextFields(fields);
    }
  }

  void AddSampleEvents() {
    std::vector<Field> sample = {StartTime(), Pooled("sampledThread", Pool::kThread, "Thread"),
                                 Pooled("stackTrace", Pool::kStackTrace, "Stack Trace"),
                                 Pooled("state", Pool::kThreadState, "Thread State"),
                                 ExtensionSize()};
    if (context_ == JfrContext::kPool) {
      sample.push_back(Pooled("value", Pool::kValue, "Value"));
    } else {
      sample.push_back(Boolean("folded", "Folded"));
      sample.push_back(Long("value", "Value", Unit::kTimespanNs));
    }
    sample.push_back(Long("weight", "Samples"));
    AddContextTo(sample);
    AddEvent(kExecutionSampleName, kExecutionSampleId, "Method Profiling Sample", sample,
             "Java Virtual Machine");
    AddEvent(kWallSampleName, kWallSampleId, "Wall Clock Sample", std::move(sample));

    std::vector<Field> allocation = {StartTime(),
                                     Pooled("eventThread", Pool::kThread, "Event Thread"),
                                     Pooled("stackTrace", Pool::kStackTrace, "Stack Trace"),
                                     Pooled("objectClass", Pool::kClass, "Object Class"),
                                     Long("weight", "Sample Weight", Unit::kBytes),
                                     ExtensionSize(),
                                     Boolean("folded", "Folded"),
                                     Long("samples", "Samples"),
                                     Pooled("state", Pool::kThreadState, "Thread State")};
    AddContextTo(allocation);
    AddEvent(kAllocationSampleName, kAllocationSampleId, "Object Allocation Sample",
             std::move(allocation), "Java Virtual Machine");

    std::vector<Field> lock = {StartTime(),
                               Long("duration", "Duration", Unit::kTimespanTicks),
                               Pooled("eventThread", Pool::kThread, "Event Thread"),
                               Pooled("stackTrace", Pool::kStackTrace, "Stack Trace"),
                               Pooled("monitorClass", Pool::kClass, "Monitor Class"),
                               Pooled("previousOwner", Pool::kThread, "Previous Monitor Owner"),
                               Long("address", "Monitor Address", Unit::kAddress),
                               ExtensionSize(),
                               Boolean("folded", "Folded"),
                               Long("samples", "Samples"),
                               Pooled("state", Pool::kThreadState, "Thread State")};
    AddContextTo(lock);
    AddEvent(kLockName, kLockId, "Lock Wait", std::move(lock), "Java Application");
  }

  void AddOtherEvents() {
    AddEvent(kCounterName, kCounterId, "Counter",
             {StartTime(), String("name", "Name"), Long("value", "Value")});
    AddEvent(
        kPeriodName, kPeriodId, "Sampling Period",
        {StartTime(), String("kind", "Kind"), Long("requested", "Requested", Unit::kTimespanNs),
         Long("actual", "Actual", Unit::kTimespanNs)});
    AddEvent(kEndpointName, kEndpointId, "Endpoint",
             {StartTime(), Long("localRootSpanId", "Local Root Span Id"),
              String(kEndpointField, "Endpoint")});
    AddEvent(kResourceName, kResourceId, "Resource Attribute",
             {StartTime(), String("key", "Key"), String("value", "Value")});
    AddEvent(kPartName, kPartId, "Part of an Unfinished Chunk",
             {StartTime(), Long("finishedBytes", "Finished Bytes", Unit::kBytes)});
  }

  const profile::Profile& profile_;
  JfrContext context_;
  unsigned attribute_count_;
  Schema schema_;
};

}  // namespace

unsigned AttributeCount(const profile::Profile& profile) {
  auto count =
      static_cast<unsigned>(std::min<size_t>(profile.attribute_names.size(), profile::kTagCount));
  for (const profile::Context& context : profile.contexts()) {
    for (unsigned i = count; i < profile::kTagCount; ++i) {
      if (context.tags[i] != profile::kNone) count = i + 1;
    }
  }
  return count;
}

Schema MakeSchema(const profile::Profile& profile, JfrContext context) {
  return SchemaMaker(profile, context).Make();
}

}  // namespace spanprof::format::jfr
