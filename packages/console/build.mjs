// Builds the console into dist/console, with compressed copies of its files that the server sends unchanged. Does
// nothing if no input has changed since the last build.
//
//   node packages/console/build.mjs                     builds
//   node packages/console/build.mjs --serve [URL]       serves the sources with reloading, in front of
//                                                      the server at URL (http://127.0.0.1:8484)

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build, createServer } from 'vite';
import { buildIfChanged, filesIn } from '../../scripts/building/inputs.mjs';
import { ROOT } from '../../scripts/building/products.mjs';
import { ThirdParty } from '../../scripts/building/third-party.mjs';

const OUT = join(ROOT, 'dist', 'console');
const COMPRESSED = new Set(['.html', '.js', '.css', '.svg', '.wasm', '.json']);
/** Larger files have one compressed copy. */
const BROTLI_BYTES_MAX = 1_000_000;
/** The licences of the packages whose code, styles or fonts are included. */
const LICENCES = 'third-party.txt';
/** The limit of the script that the first view loads, in bytes after gzip. */
const FIRST_VIEW_BYTES_MAX = 400_000;

/** Filled by the builds of the page and of its workers. */
const thirdParty = new ThirdParty();

const config = {
  configFile: false,
  root: join(ROOT, 'packages', 'console', 'src'),
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
  resolve: {
    alias: {
      '@sagitta/client/arrow': join(ROOT, 'packages/client/src/arrow.ts'),
      '@sagitta/client': join(ROOT, 'packages/client/src/client.ts'),
      // The one for Node needs its Buffer.
      'csv-parse/sync': 'csv-parse/browser/esm/sync',
    },
  },
  plugins: [thirdParty.plugin],
  worker: { format: 'es', plugins: () => [thirdParty.plugin] },
};

if (process.argv[2] === '--serve') await serve(process.argv[3] ?? 'http://127.0.0.1:8484');
else await buildIfChanged('console', buildConsole);

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

async function buildConsole() {
  await build(config);
  writeFileSync(join(OUT, LICENCES), thirdParty.text);
  checkFirstView();
  for (const path of filesIn(OUT)) if (COMPRESSED.has(extname(path))) compress(path);
}

/** Measures the scripts that the first view needs: those of index.html and of the overview, with their imports. */
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

function compress(path) {
  const bytes = readFileSync(path);
  writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
  // The decoder of Parquet, which few load: brotli takes as long as the rest of the build, and the file itself would make
  // the npm package larger by a sixth. The server unpacks it for clients without gzip.
  if (bytes.byteLength > BROTLI_BYTES_MAX) {
    rmSync(path);
    return;
  }
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: 11,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes.byteLength,
  };
  writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params }));
}
