// Loads the files of the program with the code that V8 made of them earlier, which saves a third of a start. Part of
// dist/app. V8 refuses code of another version or with other options; then a file is compiled as usual.

const { closeSync, fstatSync, openSync, readSync } = require('node:fs');
const { createRequire } = require('node:module');
const { dirname, join, resolve } = require('node:path');
const { Script } = require('node:vm');

/** A smaller file is compiled in less time than another file is read. */
const CACHED_BYTES_MIN = 20_000;

/** Parts of Node that take milliseconds to load, and that many processes never use. */
const LATE = new Set(['node:child_process', 'node:http2', 'node:https', 'node:tls', 'node:zlib']);

/** Modules that are loaded, by path. */
const modules = new Map();
/** Scripts of this process, by path. */
const scripts = new Map();

/** What the files hold one after another: memory that is used for the first time costs more than reading a file. */
let scratch = Buffer.alloc(0);

/** The text of a file, so that its code is a function. Done by the build: here it would copy each file. */
exports.wrap = (code) =>
  `(function (exports, require, module, __filename, __dirname, importPackage) { ${code}\n});`;

/** Returns what the file exports; its path is relative to this folder. */
exports.load = (path) => loadModule(join(__dirname, path));

/**
 * Loads the files, which are those that processes start with, and writes beside each large file that is loaded the code
 * of its functions that have run. Throws where the folder cannot be written to.
 */
exports.save = (paths) => {
  const { renameSync, statSync, writeFileSync } = require('node:fs');
  const { setFlagsFromString } = require('node:v8');
  for (const path of paths) loadModule(join(__dirname, path));
  // V8 would refuse the code in a process that has not set the option, as the program does to collect garbage.
  setFlagsFromString('--no-expose-gc');
  for (const [filename, script] of scripts) {
    if (statSync(filename).size < CACHED_BYTES_MIN) continue;
    const target = cachePath(filename);
    writeFileSync(`${target}.new`, script.createCachedData());
    renameSync(`${target}.new`, target);
    if (compile(filename).cachedDataRejected) throw new Error(`V8 refuses the code in ${target}`);
  }
};

function loadModule(filename) {
  const known = modules.get(filename);
  if (known !== undefined) return known.exports;
  const module = { exports: {} };
  modules.set(filename, module);
  const script = compile(filename);
  scripts.set(filename, script);
  const start = script.runInThisContext();
  start(module.exports, requireFor(filename), module, filename, dirname(filename), importPackage);
  return module.exports;
}

function compile(filename) {
  const code = read(filename).latin1Slice();
  return new Script(code, { filename, cachedData: readIfPresent(cachePath(filename)) });
}

/** The bytes of a file, until the next one is read. */
function read(path) {
  const file = openSync(path);
  try {
    const { size } = fstatSync(file);
    if (scratch.length < size) scratch = Buffer.allocUnsafeSlow(size);
    const bytes = scratch.subarray(0, size);
    for (let at = 0; at < size; ) {
      const count = readSync(file, bytes, { offset: at });
      if (count === 0) throw new Error(`${path} became shorter while it was read`);
      at += count;
    }
    return bytes;
  } finally {
    closeSync(file);
  }
}

/** What scripts call in place of `import()`, of which V8 does not know in code from a cache where it starts from. */
const importPackage = (name) => import(name);

/** Files of the program come through the cache, packages and parts of Node as usual. */
function requireFor(filename) {
  const requirePackage = createRequire(filename);
  const require = (name) => {
    if (name.startsWith('.')) return loadModule(resolve(dirname(filename), name));
    return LATE.has(name) ? late(name) : requirePackage(name);
  };
  return Object.assign(require, { resolve: requirePackage.resolve });
}

/** A part of Node that is loaded when something in it is asked for. */
function late(name) {
  const load = () => process.getBuiltinModule(name);
  return new Proxy(
    {},
    {
      get: (_, key) => load()[key],
      has: (_, key) => key in load(),
      ownKeys: () => Reflect.ownKeys(load()),
      getOwnPropertyDescriptor: (_, key) => {
        const found = Reflect.getOwnPropertyDescriptor(load(), key);
        return found && { ...found, configurable: true };
      },
    },
  );
}

function cachePath(filename) {
  return filename.replace(/\.js$/, '.cache');
}

function readIfPresent(path) {
  try {
    return read(path);
  } catch {
    return undefined;
  }
}
