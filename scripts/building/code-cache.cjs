// Loads a large file of the program with the code that V8 made of it earlier, which saves a third of the start.
// Part of dist/app. V8 refuses code of another version or with other options; then the file is compiled as usual.

const { readFileSync, renameSync, writeFileSync } = require('node:fs');
const { createRequire, wrap } = require('node:module');
const { dirname, join } = require('node:path');
const { constants, Script } = require('node:vm');

/** Returns what the file exports; its path is relative to this folder. */
exports.load = function load(path) {
  return run(compile(join(__dirname, path)));
};

/** Loads the file and writes beside it the code that this took. Throws where the folder cannot be written to. */
exports.save = function save(path) {
  const compiled = compile(join(__dirname, path));
  run(compiled);
  const target = cachePath(compiled.filename);
  writeFileSync(`${target}.new`, compiled.script.createCachedData());
  renameSync(`${target}.new`, target);
};

function compile(filename) {
  const script = new Script(wrap(readFileSync(filename, 'latin1')), {
    filename,
    cachedData: readIfPresent(cachePath(filename)),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  return { filename, script };
}

function run({ filename, script }) {
  const module = { exports: {} };
  const start = script.runInThisContext();
  start(module.exports, createRequire(filename), module, filename, dirname(filename));
  return module.exports;
}

function cachePath(filename) {
  return filename.replace(/\.js$/, '.cache');
}

function readIfPresent(path) {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}
