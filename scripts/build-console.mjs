// Builds the console (src/console) to dist/console, with compressed copies beside its files, which the
// server sends as they are. Does nothing when no input has changed since the last build.
//
//   node scripts/build-console.mjs                     builds
//   node scripts/build-console.mjs --serve [URL]       serves the sources with reloading, in front of
//                                                      the server at URL (http://127.0.0.1:8484)

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build, createServer } from 'vite';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const OUT = join(ROOT, 'dist', 'console');
/** The digest of the inputs of what is in dist/console. */
const STAMP = join(ROOT, 'dist', '.console-inputs');
const INPUTS = [
  'src/console',
  'src/client',
  'src/common',
  'package-lock.json',
  'scripts/build-console.mjs',
];
const COMPRESSED = new Set(['.html', '.js', '.css', '.svg', '.wasm', '.json']);
/** The licences of the packages whose code, styles or fonts are in the files. */
const LICENCES = 'third-party.txt';
const LICENCE_FILE = /^(licen[cs]e|notice|copying|copyright)([.-].*)?$/i;
/** Bytes after gzip of the script that the first view loads. */
const FIRST_VIEW_BYTES_MAX = 400_000;

/** The folders of the packages in the files; filled by the builds of the page and of its workers. */
const packages = new Set();

const config = {
  configFile: false,
  root: join(ROOT, 'src', 'console'),
  // Relative, so that the console works under any path of a proxy.
  base: './',
  logLevel: 'warn',
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: ['chrome123', 'firefox128', 'safari17.5'],
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1_500,
    manifest: true,
    rolldownOptions: {
      // Packages mark modules for servers that render React; here everything runs in the browser.
      onLog(level, log, write) {
        if (log.code !== 'MODULE_LEVEL_DIRECTIVE') write(level, log);
      },
    },
  },
  plugins: [{ name: 'licences', generateBundle: writeLicences }],
  worker: { format: 'es', plugins: () => [{ name: 'packages', generateBundle: addPackages }] },
};

if (process.argv[2] === '--serve') await serve(process.argv[3] ?? 'http://127.0.0.1:8484');
else await buildIfChanged();

async function serve(target) {
  const server = await createServer({
    ...config,
    base: '/console/',
    logLevel: 'info',
    server: { host: '127.0.0.1', proxy: { '^/(?!console/)': { target } } },
  });
  await server.listen();
  server.printUrls();
}

async function buildIfChanged() {
  const digest = digestOf(INPUTS);
  const isCurrent = existsSync(STAMP) && readFileSync(STAMP, 'utf8') === digest;
  if (isCurrent && existsSync(join(OUT, 'index.html'))) return;
  await build(config);
  checkFirstView();
  for (const path of filesIn(OUT)) if (COMPRESSED.has(extname(path))) compress(path);
  writeFileSync(STAMP, digest);
}

function digestOf(inputs) {
  const hash = createHash('sha256');
  for (const input of inputs) {
    const path = join(ROOT, input);
    for (const file of statSync(path).isDirectory() ? filesIn(path) : [path]) {
      hash.update(file).update('\0').update(readFileSync(file)).update('\0');
    }
  }
  return hash.digest('hex');
}

function filesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** The scripts that index.html loads before anything is shown: its entry and what that imports. */
function checkFirstView() {
  const manifest = JSON.parse(readFileSync(join(OUT, '.vite', 'manifest.json'), 'utf8'));
  rmSync(join(OUT, '.vite'), { recursive: true });
  const names = new Set();
  const add = (name) => {
    if (names.has(name)) return;
    names.add(name);
    for (const imported of manifest[name].imports ?? []) add(imported);
  };
  add('index.html');
  add('views/overview/overview-view.tsx');
  const byteCount = [...names]
    .map((name) => gzipSync(readFileSync(join(OUT, manifest[name].file))).byteLength)
    .reduce((sum, count) => sum + count, 0);
  console.log(`console: the first view loads ${Math.round(byteCount / 1000)} kB of script (gzip)`);
  if (byteCount > FIRST_VIEW_BYTES_MAX) {
    throw new Error(
      `the first view of the console loads ${byteCount} bytes of script after gzip, expected at most ${FIRST_VIEW_BYTES_MAX}; load what it does not need with its own view`,
    );
  }
}

/** A plugin's hook: the modules of a build are known when its files are made. */
function addPackages() {
  for (const id of this.getModuleIds()) {
    const folder = /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1];
    if (folder !== undefined && existsSync(join(folder, 'package.json'))) packages.add(folder);
  }
}

/** For the build of the page, which ends after those of its workers. */
function writeLicences() {
  addPackages.call(this);
  const texts = [...packages].sort().map(licenceOf);
  this.emitFile({ type: 'asset', fileName: LICENCES, source: texts.join('\n') });
}

function licenceOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const texts = readdirSync(folder)
    .filter((file) => LICENCE_FILE.test(file))
    .map((file) => readFileSync(join(folder, file), 'utf8').trim());
  return `${name} ${version} (${license})\n\n${texts.join('\n\n')}\n\n${'-'.repeat(80)}\n`;
}

function compress(path) {
  const bytes = readFileSync(path);
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: 11,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes.byteLength,
  };
  writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params }));
  writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
}
