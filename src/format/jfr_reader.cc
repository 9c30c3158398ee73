// Files of any number of chunks, ours or another's, as hostile input.

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/format.h"
#include "format/jfr.h"
#include "format/jfr_chunk.h"
#include "format/jfr_metadata.h"
#include "format/jfr_pool_index.h"
#include "format/jfr_profile_reader.h"
#include "format/jfr_record.h"
#include "profile/profile_query.h"

namespace spanprof::format {
namespace jfr {
namespace {

Error TooLarge(const ReadLimits& limits) {
  return {EFBIG,
          "the profile in this JFR file would take more than " +
              std::to_string(limits.max_memory >> 20) + " MiB",
          "split the file by its chunks ('jfr disassemble')"};
}

// A profile folds samples when it is full. A reader refuses before that, so its profiles have more
// room than they may use.
profile::Profile MakeProfile(const ReadLimits& limits) {
  return profile::Profile(limits.max_memory > SIZE_MAX / 4 ? SIZE_MAX : limits.max_memory * 4);
}

Result<ChunkContents> ReadContents(std::string_view bytes, size_t begin, const ChunkHeader& header,
                                   const ReadLimits& limits) {
  const Result<EventSpan> event =
      ReadEventSpan(bytes, begin + header.metadata, begin + header.size);
  if (!event) return tl::make_unexpected(event.error());
  if (event->type != kMetadataEventId) {
    return Fail(EBADMSG, "JFR chunk at byte " + std::to_string(begin) +
                             ": there is no metadata event at byte " +
                             std::to_string(begin + header.metadata));
  }
  Result<Metadata> metadata = Metadata::Read(bytes, event->fields, event->end);
  if (!metadata) return tl::make_unexpected(std::move(metadata.error()));

  std::vector<EventSpan> checkpoints;
  Result<void> walked =
      ForEachEvent(bytes, begin, header, [&](const EventSpan& span) -> Result<void> {
        if (span.type == kCheckpointEventId) checkpoints.push_back(span);
        return {};
      });
  if (!walked) return tl::make_unexpected(std::move(walked.error()));
  Result<PoolIndex> pools = PoolIndex::Read(bytes, *metadata, checkpoints, limits.max_memory);
  if (!pools) return tl::make_unexpected(std::move(pools.error()));
  return ChunkContents(bytes, std::move(*metadata), std::move(*pools));
}

// False for the separators between our chunks.
bool HasEventTypes(const Metadata& metadata) {
  return std::any_of(metadata.types().begin(), metadata.types().end(),
                     [](const Type& type) { return type.super_type == kEventSuperType; });
}

// Nothing if the chunk is a separator.
Result<std::optional<profile::Profile>> ReadChunk(std::string_view bytes, size_t begin,
                                                  const ChunkHeader& header,
                                                  const ReadLimits& limits) {
  const Result<ChunkContents> contents = ReadContents(bytes, begin, header, limits);
  if (!contents) return tl::make_unexpected(contents.error());
  if (!HasEventTypes(contents->metadata())) return std::nullopt;
  profile::Profile profile = MakeProfile(limits);
  ProfileReader reader(*contents, header, profile);
  const auto read_all = [&](auto read_one) {
    return ForEachEvent(bytes, begin, header, [&](const EventSpan& event) -> Result<void> {
      if (!read_one(event)) {
        return Fail(EBADMSG, "JFR event at byte " + std::to_string(event.begin) +
                                 ": its fields do not fit its size");
      }
      if (reader.memory_used() > limits.max_memory) return tl::make_unexpected(TooLarge(limits));
      return {};
    });
  };
  Result<void> read = read_all([&](const EventSpan& event) { return reader.ReadFact(event); });
  if (read) read = read_all([&](const EventSpan& event) { return reader.ReadSample(event); });
  if (!read) return tl::make_unexpected(std::move(read.error()));
  // The counters of the file come last, so these are of this reading: something found no room.
  if (!profile.counters().empty()) return tl::make_unexpected(TooLarge(limits));
  reader.Finish();
  return profile;
}

}  // namespace
}  // namespace jfr

Result<profile::Profile> ReadJfr(std::string_view bytes, const ReadLimits& limits) {
  if (bytes.empty()) return Fail(EBADMSG, "the JFR file is empty");
  std::optional<profile::Profile> all;
  for (size_t begin = 0; begin < bytes.size();) {
    const Result<jfr::ChunkHeader> header = jfr::ReadChunkHeader(bytes, begin);
    if (!header) return tl::make_unexpected(header.error());
    if (!jfr::IsComplete(*header, bytes.size() - begin)) {
      return Fail(EBADMSG,
                  "JFR chunk at byte " + std::to_string(begin) + ": it is not finished (" +
                      std::to_string(header->size) + " bytes by its header, " +
                      std::to_string(bytes.size() - begin) + " there)",
                  "the file was cut while it was written; 'spanprof export' reads what is whole");
    }
    Result<std::optional<profile::Profile>> chunk = jfr::ReadChunk(bytes, begin, *header, limits);
    if (!chunk) return tl::make_unexpected(std::move(chunk.error()));
    if (!all) {
      all = std::move(*chunk);
    } else if (*chunk) {
      profile::Merge(*all, **chunk);
      if (all->memory_used() > limits.max_memory) {
        return tl::make_unexpected(jfr::TooLarge(limits));
      }
    }
    begin += static_cast<size_t>(header->size);
  }
  return all ? std::move(*all) : jfr::MakeProfile(limits);
}

Result<profile::Profile> ReadJfrLenient(std::string_view bytes, const ReadLimits& limits,
                                        std::string* warning) {
  warning->clear();
  const size_t complete = CompleteJfrPrefix(bytes);
  if (complete == 0) return ReadJfr(bytes, limits);
  Result<profile::Profile> profile = ReadJfr(bytes.substr(0, complete), limits);
  if (profile && complete < bytes.size()) {
    *warning = "the last " + std::to_string(bytes.size() - complete) +
               " bytes of the JFR file, from byte " + std::to_string(complete) +
               " on, are no complete chunk and were left out";
  }
  return profile;
}

}  // namespace spanprof::format
