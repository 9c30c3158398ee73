#include "base/options.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spanprof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals

// Returns the options, which must be valid.
Options Parsed(std::string_view text) {
  const Result<Options> options = ParseOptions(text);
  EXPECT_TRUE(options) << text << ": " << options.error().message;
  return options.value_or(Options{});
}

// Returns the error of options that must not be valid.
Error Refused(std::string_view text) {
  const Result<Options> options = ParseOptions(text);
  if (options) {
    ADD_FAILURE() << "accepted: " << text;
    return {};
  }
  EXPECT_EQ(options.error().code, EINVAL) << text;
  EXPECT_NE(options.error().hint, "") << text;
  return options.error();
}

std::string Message(std::string_view text) { return Refused(text).message; }
std::string Hint(std::string_view text) { return Refused(text).hint; }

TEST(Options, EmptyTextLeavesEverythingAbsent) {
  EXPECT_EQ(Parsed(""), Options{});
  EXPECT_EQ(Parsed(" , ,\n"), Options{});
  EXPECT_EQ(Parsed("").context_storage, std::nullopt);
}

TEST(Options, ParsesTheDocumentedExample) {
  const Options options =
      Parsed("start,cpu=1ms,ctxstorage=otel,attributes=http.route;tenant,jfr,file=profile.jfr");
  EXPECT_EQ(options.command, Command::kStart);
  EXPECT_EQ(options.cpu, 1ms);
  EXPECT_EQ(options.context_storage, ContextStorage::kOtel);
  EXPECT_THAT(options.attributes, ElementsAre("http.route", "tenant"));
  EXPECT_EQ(options.format, OutputFormat::kJfr);
  EXPECT_EQ(options.file, "profile.jfr");
}

TEST(Options, CommandStandsFirst) {
  EXPECT_EQ(Parsed("start").command, Command::kStart);
  EXPECT_EQ(Parsed(" stop ").command, Command::kStop);
  EXPECT_EQ(Parsed("dump,file=x").command, Command::kDump);
  EXPECT_EQ(Parsed(",status").command, Command::kStatus);
  EXPECT_EQ(Parsed("cpu=1ms").command, Command::kNone);
  EXPECT_EQ(Message("cpu=1ms,start"), "the command 'start' does not stand first");
  EXPECT_EQ(Message("start,stop"), "the command 'stop' follows the command 'start'");
  EXPECT_EQ(Message("start=1"), "the command 'start' takes no value");
}

TEST(Options, TrimsSpaces) {
  EXPECT_EQ(Parsed(" start , cpu = 1ms ,\tattributes = a ; b \n"),
            Parsed("start,cpu=1ms,attributes=a;b"));
}

TEST(Options, UnderstandsEscapes) {
  EXPECT_EQ(Parsed(R"(file=a\,b\\c)").file, R"(a,b\c)");
  EXPECT_EQ(Parsed(R"(file=a;b\;c)").file, "a;b;c");
  EXPECT_EQ(Parsed(R"(file=\ a\ ,service=x)").file, " a ");
  EXPECT_THAT(Parsed(R"(attributes=a\;b;c\,d)").attributes, ElementsAre("a;b", "c,d"));
  EXPECT_THAT(Parsed(R"(resource=k=a\;b\,c=d;l=)").resource,
              ElementsAre(ResourceAttribute{"k", "a;b,c=d"}, ResourceAttribute{"l", ""}));
}

TEST(Options, RefusesBackslashesThatEscapeNothing) {
  EXPECT_EQ(Message(R"(file=C:\temp)"), R"(file='C:\\temp' has a backslash that escapes nothing)");
  EXPECT_THAT(Hint(R"(file=C:\temp)"), HasSubstr("write a backslash as two"));
  for (const char* text : {R"(file=a\)", R"(attributes=a;\b)", R"(resource=\a=b)",
                           R"(resource=a=\b)", R"(header=a:\b)", R"(to=http://h/\a)",
                           R"(service=\x)", R"(ctxstorage=\otel)", R"(format=\jfr)"}) {
    EXPECT_THAT(Message(text), HasSubstr("backslash that escapes nothing")) << text;
  }
}

TEST(Options, RefusesAKeyGivenTwice) {
  EXPECT_EQ(Message("cpu=1ms,cpu=2ms"), "cpu='2ms' is given a second time");
  EXPECT_EQ(Message("attributes=a,attributes=b"), "attributes='b' is given a second time");
  EXPECT_EQ(Message("jfr,jfr"), "jfr is given a second time");
  EXPECT_EQ(Message("labels=datadog,labels=pyroscope"),
            "labels='pyroscope' is given a second time");
}

TEST(Options, UnknownOptionsNameTheNearest) {
  EXPECT_EQ(Message("ctxstorge=otel"), "unknown option 'ctxstorge'");
  EXPECT_EQ(Hint("ctxstorge=otel"), "did you mean 'ctxstorage'?");
  EXPECT_EQ(Hint("CPU=1ms"), "did you mean 'cpu'?");
  EXPECT_EQ(Hint("strat"), "did you mean 'start'?");
  EXPECT_EQ(Hint("jrf"), "did you mean 'jfr'?");
  EXPECT_THAT(Hint("interval=1ms"), StartsWith("the options are start, stop, dump, status, ctxs"));
  EXPECT_EQ(Message("=1"), "unknown option ''");
}

TEST(Options, NeedsValuesOfAllButFlags) {
  EXPECT_EQ(Message("cpu"), "cpu has no value");
  EXPECT_EQ(Hint("cpu"), "give 100us to 10s; for instance cpu=10ms");
  EXPECT_EQ(Message("jfr=yes"), "jfr='yes': jfr takes no value");
  for (const OptionDescription& option : DescribeOptions()) {
    if (option.values.empty()) continue;
    EXPECT_EQ(Message(option.name), option.name + " has no value");
    EXPECT_EQ(Message(option.name + "="), option.name + " has no value");
    EXPECT_EQ(Message(option.name + "= ,jfr"), option.name + " has no value");
  }
}

TEST(Options, HintsAreThemselvesValid) {
  for (const OptionDescription& option : DescribeOptions()) {
    if (option.values.empty()) continue;
    const std::string hint = Hint(option.name);
    const std::string marker = "for instance ";
    ASSERT_THAT(hint, HasSubstr(marker));
    const std::string example = hint.substr(hint.find(marker) + marker.size());
    EXPECT_NE(Parsed(example), Options{}) << example;
  }
}

TEST(Options, Ctxstorage) {
  EXPECT_EQ(Parsed("ctxstorage=profiler").context_storage, ContextStorage::kProfiler);
  EXPECT_EQ(Parsed("ctxstorage=otel").context_storage, ContextStorage::kOtel);
  EXPECT_EQ(Message("ctxstorage=ottel"), "ctxstorage='ottel' is not one of profiler, otel");
  EXPECT_EQ(Hint("ctxstorage=ottel"), "did you mean 'otel'?");
  EXPECT_EQ(Hint("ctxstorage=shared"), "give one of profiler, otel; for instance ctxstorage=otel");
}

TEST(Options, Ctxslots) {
  EXPECT_EQ(Parsed("ctxslots=1").context_slots, 1u);
  EXPECT_EQ(Parsed("ctxslots=4194304").context_slots, 4194304u);
  EXPECT_EQ(Message("ctxslots=0"), "ctxslots='0' is below 1");
  EXPECT_EQ(Message("ctxslots=4194305"), "ctxslots='4194305' is above 4194304");
  EXPECT_EQ(Message("ctxslots=99999999999999999999999"),
            "ctxslots='99999999999999999999999' is above 4194304");
  EXPECT_EQ(Hint("ctxslots=0"), "give 1 to 4194304; for instance ctxslots=65536");
  for (const char* value : {"-1", "+1", "1k", "1.0", "0x10", "many"}) {
    const std::string text = std::string("ctxslots=") + value;
    EXPECT_EQ(Message(text), std::string("ctxslots='") + value + "' is not a whole number");
  }
}

TEST(Options, Attributes) {
  EXPECT_THAT(Parsed("attributes=a;b;c;d;e;f;g;h;i;j").attributes, testing::SizeIs(10));
  EXPECT_EQ(Message("attributes=a;b;c;d;e;f;g;h;i;j;k"),
            "attributes='a;b;c;d;e;f;g;h;i;j;k' has more than 10 names");
  EXPECT_EQ(Message("attributes=a;b;a"), "attributes='a;b;a' has the name 'a' twice");
  EXPECT_EQ(Message("attributes=a;;b"), "attributes='a;;b' has no name at position 2");
  EXPECT_EQ(Message("attributes=a;"), "attributes='a;' has no name at position 2");
  EXPECT_EQ(Message("attributes=a;b\x01"), "attributes='b\\x01': the name has a control character");
  EXPECT_THAT(Message("attributes=\xFF"), HasSubstr("is not UTF-8"));
  EXPECT_EQ(Parsed("attributes=" + std::string(128, 'n')).attributes.front().size(), 128u);
  EXPECT_THAT(Message("attributes=" + std::string(129, 'n')),
              HasSubstr("the name is 129 bytes long, more than 128"));
}

TEST(Options, Switches) {
  EXPECT_EQ(Parsed("latency=on").latency, true);
  EXPECT_EQ(Parsed("latency=off").latency, false);
  EXPECT_EQ(Message("latency=yes"), "latency='yes' is not one of off, on");
  EXPECT_EQ(Parsed("log=stderr").log, LogTarget::kStderr);
  EXPECT_EQ(Parsed("log=none").log, LogTarget::kNone);
  EXPECT_EQ(Message("log=file"), "log='file' is not one of stderr, none");
  EXPECT_EQ(Parsed("fork=follow").fork, ForkPolicy::kFollow);
  EXPECT_EQ(Parsed("fork=quiet").fork, ForkPolicy::kQuiet);
  EXPECT_EQ(Message("fork=never"), "fork='never' is not one of follow, quiet");
  EXPECT_EQ(Parsed("jfrcontext=pool").jfr_context, JfrContext::kPool);
  EXPECT_EQ(Parsed("jfrcontext=flat").jfr_context, JfrContext::kFlat);
  EXPECT_EQ(Message("jfrcontext=Flat"), "jfrcontext='Flat' is not one of pool, flat");
}

TEST(Options, ResourceTexts) {
  const Options options = Parsed("service=K\xC3\xA4se,version=1.2 beta,environment=a=b");
  EXPECT_EQ(options.service, "K\xC3\xA4se");
  EXPECT_EQ(options.version, "1.2 beta");
  EXPECT_EQ(options.environment, "a=b");
  EXPECT_EQ(Message("service=a\x1B[2Jb"), "service='a\\x1b[2Jb' has a control character");
  EXPECT_EQ(Message("version=\xC3"), "version='\\xc3' is not UTF-8");
  EXPECT_THAT(Message("environment=" + std::string(4097, 'e')),
              HasSubstr("is 4097 bytes long, more than 4096"));
}

TEST(Options, ResourceAddsUp) {
  EXPECT_THAT(Parsed("resource=a=1; b = 2;,resource=c=x=y").resource,
              ElementsAre(ResourceAttribute{"a", "1"}, ResourceAttribute{"b", "2"},
                          ResourceAttribute{"c", "x=y"}));
  EXPECT_EQ(Message("resource=a"), "resource='a' has no '=' between key and value");
  EXPECT_EQ(Message("resource=a=1;=2"), "resource='=2' has no key before '='");
  EXPECT_EQ(Message("resource=a=1,resource=a=2"), "resource='a=2' has a key that was given before");
  EXPECT_EQ(Message("resource=a=\x02"), "resource='a=\\x02': the value has a control character");
  EXPECT_EQ(Message("resource=\x02=a"), "resource='\\x02=a': the key has a control character");
  std::string many = "resource=";
  for (int i = 0; i < 128; ++i) many += "k" + std::to_string(i) + "=v;";
  EXPECT_EQ(Parsed(many).resource.size(), 128u);
  EXPECT_EQ(Message(many + "k=v"), "resource='k=v' is more than 128 attributes");
}

TEST(Options, Durations) {
  EXPECT_EQ(Parsed("cpu=100us").cpu, 100us);
  EXPECT_EQ(Parsed("cpu=10s").cpu, 10s);
  EXPECT_EQ(Parsed("cpu=1000000").cpu, 1ms);
  EXPECT_EQ(Parsed("cpu=500000ns").cpu, 500us);
  EXPECT_EQ(Message("cpu=5"), "cpu='5' is below 100us");
  EXPECT_EQ(Hint("cpu=5"),
            "give 100us to 10s; for instance cpu=10ms; a number without a unit is nanoseconds");
  EXPECT_EQ(Message("cpu=99us"), "cpu='99us' is below 100us");
  EXPECT_EQ(Hint("cpu=99us"), "give 100us to 10s; for instance cpu=10ms");
  EXPECT_EQ(Message("cpu=11s"), "cpu='11s' is above 10s");
  EXPECT_EQ(Message("cpu=99999999999999999999h"), "cpu='99999999999999999999h' is above 10s");
  EXPECT_EQ(Message("cpu=fast"), "cpu='fast' is not a duration");
  EXPECT_EQ(Message("cpu=1.5ms"), "cpu='1.5ms' is not a duration");
  EXPECT_EQ(Parsed("wall=1ms").wall, 1ms);
  EXPECT_EQ(Parsed("wall=10s").wall, 10s);
  EXPECT_EQ(Message("wall=999us"), "wall='999us' is below 1ms");
  EXPECT_EQ(Message("wall=10001ms"), "wall='10001ms' is above 10s");
  EXPECT_EQ(Parsed("every=1s").every, 1s);
  EXPECT_EQ(Parsed("every=24h").every, 24h);
  EXPECT_EQ(Message("every=60"), "every='60' is below 1s");
  EXPECT_EQ(Message("every=25h"), "every='25h' is above 24h");
}

TEST(Options, Threads) {
  EXPECT_EQ(Parsed("threads=1").wall_threads, 1u);
  EXPECT_EQ(Parsed("threads=4096").wall_threads, 4096u);
  EXPECT_EQ(Message("threads=0"), "threads='0' is below 1");
  EXPECT_EQ(Message("threads=4097"), "threads='4097' is above 4096");
}

TEST(Options, Maxmem) {
  EXPECT_EQ(Parsed("maxmem=1m").max_memory, 1048576u);
  EXPECT_EQ(Parsed("maxmem=1048576").max_memory, 1048576u);
  EXPECT_EQ(Parsed("maxmem=1GiB").max_memory, std::uint64_t{1} << 30);
  EXPECT_EQ(Message("maxmem=1023k"), "maxmem='1023k' is below 1m");
  EXPECT_EQ(Message("maxmem=64"), "maxmem='64' is below 1m");
  EXPECT_THAT(Hint("maxmem=64"), HasSubstr("a number without a unit is bytes"));
  EXPECT_EQ(Message("maxmem=2t"), "maxmem='2t' is above 1t");
  EXPECT_EQ(Message("maxmem=lots"), "maxmem='lots' is not a size");
}

TEST(Options, Paths) {
  EXPECT_EQ(Parsed("file=/tmp/a b.jfr,spool=/var/spool").file, "/tmp/a b.jfr");
  EXPECT_EQ(Parsed("spool=/var/spool").spool, "/var/spool");
  EXPECT_EQ(Parsed("file=/tmp/\xFF").file, "/tmp/\xFF");
  EXPECT_EQ(Message("file=a\nb"), "file='a\\nb' has a control character");
  EXPECT_EQ(Message(std::string_view("file=a\0b", 8)), "file='a\\x00b' has a control character");
  EXPECT_THAT(Message("spool=" + std::string(5000, 'd')), HasSubstr("longer than 4096 bytes"));
}

TEST(Options, Formats) {
  EXPECT_EQ(Parsed("format=jfr").format, OutputFormat::kJfr);
  EXPECT_EQ(Parsed("format=pprof").format, OutputFormat::kPprof);
  EXPECT_EQ(Parsed("format=otlp").format, OutputFormat::kOtlp);
  EXPECT_EQ(Parsed("format=folded").format, OutputFormat::kFolded);
  EXPECT_EQ(Parsed("format=html").format, OutputFormat::kHtml);
  EXPECT_EQ(Parsed("format=firefox").format, OutputFormat::kFirefox);
  EXPECT_EQ(Parsed("format=perfetto").format, OutputFormat::kPerfetto);
  EXPECT_EQ(Message("format=xml"),
            "format='xml' is not one of jfr, pprof, otlp, folded, html, firefox, perfetto");
}

TEST(Options, TheJfrFlagIsAFormat) {
  EXPECT_EQ(Parsed("jfr"), Parsed("format=jfr"));
  EXPECT_EQ(Parsed("jfr,format=jfr"), Parsed("format=jfr"));
  EXPECT_EQ(Message("jfr,format=pprof"), "jfr and format='pprof' contradict each other");
  EXPECT_EQ(Message("format=pprof,jfr"), "jfr and format='pprof' contradict each other");
}

TEST(Options, To) {
  EXPECT_EQ(Parsed("to=http://localhost:4318/v1?a=b").to, "http://localhost:4318/v1?a=b");
  EXPECT_EQ(Parsed("to=https://[::1]").to, "https://[::1]");
  EXPECT_EQ(Parsed("to=otlp+http://h:4318").to, "otlp+http://h:4318");
  EXPECT_EQ(Parsed("to=pprof+https://h/a").to, "pprof+https://h/a");
  EXPECT_EQ(Parsed("to=otlp").to, "otlp");
  EXPECT_EQ(Message("to=pprof"), "to='pprof' does not begin with http:// or https://");
  EXPECT_EQ(Message("to=otlp+pprof+http://h"),
            "to='otlp+pprof+http://h' does not begin with http:// or https://");
  EXPECT_EQ(Message("to=localhost:4318"),
            "to='localhost:4318' does not begin with http:// or https://");
  EXPECT_EQ(Message("to=http://h:99999"),
            "to='http://h:99999' has a port that is not a number from 1 to 65535");
  EXPECT_EQ(Message("to=http://h/a b"),
            "to='http://h/a b' has a space or another character that a URL may not have");
}

TEST(Options, HeadersAddUp) {
  EXPECT_THAT(Parsed(R"(header=X-Scope-OrgID: a ,header=Accept:x\,y;q=1,header=Empty:)").headers,
              ElementsAre(HttpHeader{"X-Scope-OrgID", "a"}, HttpHeader{"Accept", "x,y;q=1"},
                          HttpHeader{"Empty", ""}));
  EXPECT_THAT(Message("header=Authorization"), HasSubstr("has no ':' between name and value"));
  EXPECT_THAT(Message("header=:x"), HasSubstr("has a name that is not"));
  EXPECT_THAT(Message("header=a b:x"), HasSubstr("has a name that is not"));
  EXPECT_THAT(Message("header=A:x\r\nHost: y"), HasSubstr("the value has a control character"));
  EXPECT_THAT(Message("header=" + std::string(257, 'n') + ":x"),
              HasSubstr("the name is 257 bytes long"));
  std::string many;
  for (int i = 0; i < 64; ++i) many += "header=A:b,";
  EXPECT_EQ(Parsed(many).headers.size(), 64u);
  EXPECT_THAT(Message(many + "header=A:b"), HasSubstr("more than 64 headers"));
}

TEST(Options, Labels) {
  EXPECT_THAT(Parsed("labels=pyroscope; datadog").labels,
              ElementsAre(LabelScheme::kPyroscope, LabelScheme::kDatadog));
  EXPECT_EQ(Message("labels=datadog;new"),
            "labels='datadog;new': 'new' is not one of datadog, pyroscope");
  EXPECT_EQ(Hint("labels=dadadog"), "did you mean 'datadog'?");
  EXPECT_EQ(Message("labels=datadog;datadog"), "labels='datadog;datadog' has 'datadog' twice");
}

TEST(Options, ErrorsNeverShowSecrets) {
  for (const char* text :
       {"header=Authorization hunter2", "header=A b:hunter2", "header=A:hunter2\x01",
        R"(header=A:hunter2\x)", "to=http://me:hunter2@host", "to=me:hunter2@host",
        "to=ftp://h/?key=hunter2", "to=http://h:0/?key=hunter2", R"(to=http://me:hunter2@h\x)",
        "to=http://h,to=http://me:hunter2@h"}) {
    const Error error = Refused(text);
    EXPECT_THAT(error.message, Not(HasSubstr("hunter2")));
    EXPECT_THAT(error.hint, Not(HasSubstr("hunter2")));
  }
}

TEST(Options, ErrorsAreShortAndPrintable) {
  const std::string noise = std::string(5000, '\x1B') + std::string(5000, 'x');
  for (const OptionDescription& option : DescribeOptions()) {
    const Error error = Refused(option.name + "=" + noise);
    EXPECT_LT(error.message.size(), 250u) << option.name;
    EXPECT_TRUE(std::none_of(error.message.begin(), error.message.end(), [](char c) {
      return c < ' ' || c > '~';
    })) << option.name;
  }
  EXPECT_LT(Message(noise).size(), 100u);
}

TEST(Options, ToStringOfNothingIsEmpty) { EXPECT_EQ(ToString(Options{}), ""); }

TEST(Options, ToStringIsCanonical) {
  EXPECT_EQ(ToString(Parsed("start , jfr,cpu=1000us,maxmem=1024k, resource=a=1,resource=b=2")),
            "start,resource=a=1;b=2,cpu=1ms,maxmem=1m,format=jfr");
  EXPECT_EQ(ToString(Parsed(R"(file=\ a\,b;c\\,attributes=x\;y;z)")),
            R"(attributes=x\;y;z,file=\ a\,b;c\\)");
}

TEST(Options, ToStringRoundTripsEveryOption) {
  const std::string all =
      "dump,ctxstorage=otel,ctxslots=7,attributes=a;b,latency=on,log=none,service=s,version=v,"
      "environment=e,resource=a=1;b=2,cpu=1500us,wall=20ms,threads=3,maxmem=3m,maxcpu=5,fork=quiet,"
      "alloc=64k,lock=2ms,vthreads=on,walker=asgct,file=f,format=html,jfrcontext=flat,to=http://"
      "h,every=90s,spool=d,header=A:b,header=C:d,"
      "labels=datadog;pyroscope";
  EXPECT_EQ(ToString(Parsed(all)), all);
  for (const OptionDescription& option : DescribeOptions()) {
    if (option.values.empty()) continue;
    EXPECT_THAT(all, HasSubstr("," + option.name + "="));
  }
}

TEST(Options, ToStringKeepsWhatWasGivenThoughItIsTheDefault) {
  EXPECT_EQ(ToString(Parsed("ctxstorage=profiler,latency=off")), "ctxstorage=profiler,latency=off");
}

TEST(Options, DescribedDefaultsAreAccepted) {
  Options defaults;
  defaults.context_storage = kDefaultContextStorage;
  defaults.context_slots = kDefaultContextSlots;
  defaults.latency = kDefaultLatency;
  defaults.log = kDefaultLog;
  defaults.wall_threads = kDefaultWallThreads;
  defaults.max_memory = kDefaultMaxMemory;
  defaults.fork = kDefaultFork;
  defaults.every = kDefaultEvery;
  defaults.jfr_context = kDefaultJfrContext;
  std::string text;
  for (const OptionDescription& option : DescribeOptions()) {
    EXPECT_NE(option.meaning, "") << option.name;
    if (!option.default_value.empty()) text += option.name + "=" + option.default_value + ",";
  }
  EXPECT_EQ(Parsed(text), defaults);
}

TEST(Options, RendersMarkdownRows) {
  const std::string rows = OptionsAsMarkdownRows();
  EXPECT_THAT(rows, StartsWith("| `ctxstorage=` | profiler, otel | `profiler` | Where contexts "));
  EXPECT_THAT(rows, HasSubstr("\n| `ctxslots=` | 1 to 4194304 | `65536` | Slots of "));
  EXPECT_THAT(rows, HasSubstr("\n| `cpu=` | 100us to 10s |  | Sample each thread "));
  EXPECT_THAT(rows, HasSubstr("\n| `maxmem=` | 1m to 1t | `64m` | "));
  EXPECT_THAT(rows, HasSubstr("\n| `jfr` |  |  | Short for format=jfr |\n"));
  const auto lines = static_cast<std::size_t>(std::count(rows.begin(), rows.end(), '\n'));
  EXPECT_EQ(lines, DescribeOptions().size());
  // No cell may hold a bar: five to a row.
  EXPECT_EQ(static_cast<std::size_t>(std::count(rows.begin(), rows.end(), '|')), lines * 5);
}

TEST(Options, AreDocumentedAsTheyAre) {
  std::ifstream file(SPANPROF_SOURCE_FOLDER "/docs/profiling.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(text, HasSubstr(OptionsAsMarkdownRows()));
}

TEST(Options, RendersHelpWithin100Columns) {
  const std::string help = OptionsAsHelp();
  EXPECT_THAT(help, HasSubstr("    ctxslots=  1 to 4194304 (default 65536)\n        Slots of"));
  std::size_t start = 0;
  while (start < help.size()) {
    const std::size_t end = help.find('\n', start);
    ASSERT_NE(end, std::string::npos);
    EXPECT_LE(end - start, 100u) << help.substr(start, end - start);
    start = end + 1;
  }
}

}  // namespace
}  // namespace spanprof
