// Loads the program's files together with their cached V8 code, which makes starting a third faster. Part of dist/app.
// V8 rejects code from another version or with other options; the file is then compiled as usual.

const { closeSync, fstatSync, openSync, readSync } = require('node:fs');
const { createRequire } = require('node:module');
const { dirname, join, resolve } = require('node:path');
const { Script } = require('node:vm');

/** Compiling a smaller file is quicker than reading its cache. */
const CACHED_BYTES_MIN = 20_000;

/** Node modules that take milliseconds to load and that many processes never use. */
const LATE = new Set(['node:child_process', 'node:http2', 'node:https', 'node:tls', 'node:zlib']);

/** Loaded modules by path. */
const modules = new Map();
/** Compiled scripts by path. */
const scripts = new Map();

/** Reused for every file, because touching new memory costs more than reading a file. */
let scratch = Buffer.alloc(0);

/** Wraps the code of a file in a function. The build does this, since doing it at run time would copy each file. */
exports.wrap = (code) =>
  `(function (exports, require, module, __filename, __dirname, importPackage) { ${code}\n});`;

/** Loads a file, given by its path relative to this folder, and returns its exports. */
exports.load = (path) => loadModule(join(__dirname, path));

/**
 * Loads the entry files of processes. Then writes, beside each large file that has been loaded, the code of the
 * functions that have run so far. Throws if the folder is not writable.
 */
exports.save = (paths) => {
  const { renameSync, statSync, writeFileSync } = require('node:fs');
  const { setFlagsFromString } = require('node:v8');
  for (const path of paths) loadModule(join(__dirname, path));
  // The program sets this option to collect garbage. V8 would reject the code in processes that have not set it.
  setFlagsFromString('--no-expose-gc');
  for (const [filename, script] of scripts) {
    if (statSync(filename).size < CACHED_BYTES_MIN) continue;
    const target = cachePath(filename);
    writeFileSync(`${target}.new`, script.createCachedData());
    renameSync(`${target}.new`, target);
    if (compile(filename).cachedDataRejected) throw new Error(`V8 rejects the code in ${target}`);
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

/** Returns the bytes of a file, valid until the next call. */
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

/** Replaces `import()` in scripts: in cached code, V8 does not know which file an import comes from. */
const importPackage = (name) => import(name);

/** A `require` that loads the program's files through the cache, and packages and Node's modules as usual. */
function requireFor(filename) {
  const requirePackage = createRequire(filename);
  const require = (name) => {
    if (name.startsWith('.')) return loadModule(resolve(dirname(filename), name));
    const builtin = name.startsWith('node:') ? name : `node:${name}`;
    return LATE.has(builtin) ? late(builtin) : requirePackage(name);
  };
  return Object.assign(require, { resolve: requirePackage.resolve });
}

/** Stands in for a module of Node and loads it on first use. */
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
