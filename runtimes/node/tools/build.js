#!/usr/bin/env node
'use strict';
// Compiles the addon with a C++ compiler alone:
//   build.js --output FILE --headers FOLDER [--objects FOLDER] [--core-objects FOLDER] [--jobs N]
//            [--debug] [--sanitize address] [--werror] [--portable] [--install]
//   build.js --compile-commands FOLDER --headers FOLDER
// The second writes how the addon's own files would be compiled, as clang-tidy reads it. Nothing of the core knows of
// Node.js, so versions may share the core's objects. --portable makes an addon that needs no newer C library than
// Node.js itself: in spanprof's own tree, for the prebuilt ones. --install copies the addon to where the package looks
// for the running Node.js's.

const fs = require('fs');
const os = require('os');
const path = require('path');
const { compilerWords, run, runAll, tryProgram } = require('./compiler');
const { findCore } = require('./core_sources');
const { reasonAgainstLoading } = require('./loading');
const { addonPath } = require('./platform');

const PACKAGE = path.resolve(__dirname, '..');
const NOT_OF_THE_ADDON = /_(test|benchmark|fuzzer|main)\.cc$/;

const COMMON_FLAGS = ['-fPIC', '-fvisibility=hidden', '-fvisibility-inlines-hidden', '-Wall', '-Wextra',
  '-DSPANPROF_STARTED_BY_RUNTIME'];
// As Node.js itself is compiled: what inherits from V8's classes would not find their type information.
const ADDON_FLAGS = ['-std=gnu++20', '-fno-rtti', '-fno-exceptions', '-DNODE_GYP_MODULE_NAME=spanprof'];

function defaultJobs() {
  // A compiler of a large file takes half a gigabyte.
  const byMemory = Math.floor(os.freemem() / (1 << 29));
  return Math.max(1, Math.min(os.cpus().length, byMemory, 8));
}

function optimisation(options) {
  if (options.sanitize) return ['-O1', '-g', '-fno-omit-frame-pointer', `-fsanitize=${options.sanitize}`];
  return options.debug ? ['-O1', '-g'] : ['-O2', '-g0'];
}

// Readers from outside find the variables of these files through their TLS descriptors.
const FILES_WITH_DESCRIPTORS = ['thread_locals.cc', 'outside_readers.cc'];

function flagsOfFile(file) {
  return FILES_WITH_DESCRIPTORS.includes(path.basename(file)) && process.arch === 'x64' ? ['-mtls-dialect=gnu2'] : [];
}

// The calls that compile the files into the folder, and the objects that they make.
function compilations(files, folder, flags) {
  fs.mkdirSync(folder, { recursive: true });
  const objects = files.map((file) => path.join(folder, path.basename(file).replace(/\.cc$/, '.o')));
  if (new Set(objects).size !== objects.length) throw new Error('two sources have the same name');
  const compiler = compilerWords(process.env);
  const calls = files.map((file, index) =>
    compiler.concat(flags, flagsOfFile(file), ['-MD', '-c', file, '-o', objects[index]]))
    .filter((words, index) => !isFinished(objects[index], words));
  return { calls, objects };
}

// Whether an object was made by these very words, after all the files that its source includes were changed last. The
// words are written down before the compiler runs, and the object appears when it has ended well.
function isFinished(object, words) {
  const record = `${object}.words`;
  const text = words.join('\n');
  try {
    if (fs.readFileSync(record, 'utf8') === text) {
      const made = fs.statSync(object).mtimeMs;
      const needed = fs.readFileSync(object.replace(/o$/, 'd'), 'utf8').replace(/^[^:]*:/, '').split(/[\s\\]+/);
      if (needed.every((file) => file === '' || fs.statSync(file).mtimeMs < made)) return true;
    }
  } catch (error) {
    // Something is not there: it is compiled.
  }
  fs.rmSync(object, { force: true });
  fs.writeFileSync(record, text);
  return false;
}

function writeVersionScript(folder) {
  const names = fs.readFileSync(path.join(PACKAGE, 'src', 'exports.txt'), 'utf8').split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  const file = path.join(folder, 'exports.map');
  fs.writeFileSync(file, `{\n  global:\n${names.map((name) => `    ${name};\n`).join('')}  local:\n    *;\n};\n`);
  return file;
}

// The static library, so that nothing but libc is needed later; the shared one where there is no other.
function findZlib() {
  const program = '#include <zlib.h>\nint main() { return zlibVersion() == 0; }\n';
  return ['-l:libz.a', '-lz'].find((library) => !tryProgram(program, ['-fPIC', library], process.env));
}

// The addon's own sources, without the core's, and their flags.
function ownSources(core, options) {
  const files = fs.readdirSync(path.join(PACKAGE, 'src'))
    .filter((name) => name.endsWith('.cc') && !NOT_OF_THE_ADDON.test(name))
    .map((name) => path.join(PACKAGE, 'src', name));
  // What is linked elsewhere than it is used: an old C library's interface, in terms of this one's.
  if (options.portable || options['compile-commands']) files.push(path.join(PACKAGE, 'portable', 'glibc_2_28.cc'));
  const includes = [...core.includes, path.join(PACKAGE, 'src')].map((folder) => `-I${folder}`);
  return { files, flags: ADDON_FLAGS.concat(commonFlags(options), includes, ['-isystem', options.headers]) };
}

function commonFlags(options) {
  return COMMON_FLAGS.concat(optimisation(options), options.werror ? ['-Werror'] : []);
}

function writeCompileCommands(core, options) {
  const { files, flags } = ownSources(core, options);
  const commands = files.map((file) =>
    ({ directory: PACKAGE, file, arguments: compilerWords({ CXX: process.env.CXX }).concat(flags, ['-c', file]) }));
  const folder = path.resolve(options['compile-commands']);
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, 'compile_commands.json'), JSON.stringify(commands, null, 2));
}

async function build(options) {
  const core = findCore(PACKAGE);
  if (!core) throw new Error("the core's sources are not in the package");
  if (options['compile-commands']) {
    writeCompileCommands(core, options);
    return;
  }
  const zlib = findZlib();
  if (!zlib) throw new Error('zlib cannot be linked: install zlib1g-dev');
  const objects = options.objects || path.join(path.dirname(options.output), 'objects');
  const coreObjects = options['core-objects'] || path.join(objects, 'core');
  // In spanprof's own tree the core may be there as archives already. All of one is taken: others may call the core too.
  const archives = core.files.filter((file) => file.endsWith('.a'));
  const sources = core.files.filter((file) => !file.endsWith('.a')).map((file) => path.join(core.root, file));
  const ofCore = compilations(sources, coreObjects,
    ['-std=c++20'].concat(commonFlags(options), core.includes.map((folder) => `-I${folder}`)));
  const own = ownSources(core, options);
  const ofAddon = compilations(own.files, objects, own.flags);
  await runAll(ofCore.calls.concat(ofAddon.calls), Number(options.jobs) || defaultJobs());
  // Handlers and other copies of the core may call into the library at any time: it stays loaded.
  const linkFlags = ['-shared', '-Wl,-z,nodelete', '-Wl,-z,relro,-z,now', '-static-libstdc++', '-static-libgcc',
    `-Wl,--version-script=${writeVersionScript(objects)}`];
  // A name of its own until it is whole: whoever has the old file loaded keeps it.
  const unfinished = `${options.output}.${process.pid}`;
  fs.mkdirSync(path.dirname(options.output), { recursive: true });
  await run(compilerWords({ CXX: process.env.CXX }).concat(
    options.sanitize ? [`-fsanitize=${options.sanitize}`] : [], linkFlags,
    options.debug || options.sanitize ? [] : ['-s'],
    ['-o', unfinished], ofAddon.objects, ofCore.objects,
    ['-Wl,--whole-archive', ...archives, '-Wl,--no-whole-archive', zlib]));
  fs.renameSync(unfinished, options.output);
  if (options.install) installCopy(options.output);
}

function installCopy(file) {
  const problem = reasonAgainstLoading(file);
  if (problem) throw new Error(`${file} cannot be loaded: ${problem}`);
  const target = addonPath(path.join(PACKAGE, 'native'));
  fs.mkdirSync(path.dirname(target), { recursive: true });
  fs.copyFileSync(file, `${target}.${process.pid}`);
  fs.renameSync(`${target}.${process.pid}`, target);
}

function readArguments(words) {
  const options = {};
  const flags = ['debug', 'werror', 'portable', 'install'];
  const values = ['output', 'headers', 'objects', 'core-objects', 'jobs', 'sanitize', 'compile-commands'];
  for (let i = 0; i < words.length; ++i) {
    const name = words[i].replace(/^--/, '');
    if (flags.includes(name)) options[name] = true;
    else if (values.includes(name) && i + 1 < words.length) options[name] = words[++i];
    else throw new Error(`'${words[i]}' is not understood; the options stand at the top of build.js`);
  }
  for (const name of options['compile-commands'] ? ['headers'] : ['output', 'headers']) {
    if (!options[name]) throw new Error(`--${name} is missing`);
    options[name] = path.resolve(options[name]);
  }
  return options;
}

module.exports = { build };

if (require.main === module) {
  Promise.resolve()
    .then(() => build(readArguments(process.argv.slice(2))))
    .catch((error) => {
      process.stderr.write(`${error.output || ''}build.js: ${error.message}\n`);
      process.exitCode = 1;
    });
}
