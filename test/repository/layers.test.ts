// The rules for imports and their checks: which folder may import which, which files may import a package, and that no
// files import each other in a cycle.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/**
 * What a folder of src/ or a package may import besides itself; packages are imported by name. Every folder may import
 * `common`, which imports nothing. `platform` may be imported by any code that does not run in a browser.
 */
const ALLOWED_IMPORTS: Readonly<Record<string, readonly string[]>> = {
  common: [],
  platform: ['common'],
  formats: ['common', 'platform'],
  storage: ['common', 'platform'],
  cluster: ['common', 'platform', 'storage'],
  segment: ['common', 'platform', 'formats'],
  filter: ['common', 'platform'],
  inverted: ['common', 'platform'],
  engine: ['common', 'platform'],
  database: ['common', 'platform', 'formats', 'segment', 'filter', 'inverted', 'engine', 'storage'],
  readers: ['common', 'formats'],
  server: ['common', 'platform', 'formats', 'database'],
  tools: ['common', 'platform', 'engine', 'storage', 'segment', 'database'],
  client: ['common'],
  console: ['common', 'formats', 'readers', 'client'],
  langchain: ['common', 'client'],
  cli: ['common', 'platform', 'formats', 'readers', 'client', 'tools', 'cluster'],
};

/**
 * The order inside a folder of src/ or a package: a file may import files in its own subfolder and in subfolders of
 * earlier rows. Subfolders in the same row are independent of each other. `.` stands for the files directly in the
 * folder.
 */
const INNER_ORDER: Readonly<Record<string, readonly (readonly string[])[]>> = {
  database: [
    ['api', 'layout'],
    ['admin', 'filters'],
    ['collection'],
    ['catalogue', 'search'],
    ['aggregate'],
    ['order', 'rankings'],
    ['query', 'bulk'],
    ['projection'],
    ['.'],
  ],
  cli: [['terminal'], ['service', 'files', 'writers'], ['import'], ['commands'], ['.']],
  console: [['api', 'styles'], ['ui'], ['views'], ['shell'], ['.']],
  engine: [['core'], ['simd', 'tensor', 'cuda'], ['.']],
  formats: [['json', 'text'], ['arrow'], ['parquet']],
  tools: [['doctor', 'selftest', 'verify']],
  cluster: [
    ['blobs', 'logs'],
    ['archive', 'service'],
    ['snapshots', 'members'],
    ['replication'],
    ['placement'],
    ['health'],
    ['nodes'],
  ],
  server: [
    ['wire', 'bodies'],
    ['transport'],
    ['auth', 'telemetry', 'pages'],
    ['limits', 'embedding', 'cluster'],
    ['schemas'],
    ['replies'],
    ['requests'],
    ['ingest'],
    ['routes'],
    ['.'],
  ],
};

/** Files directly in src/. Each starts a process or a thread and may import any folder. */
const ENTRY_POINTS = ['main.ts', 'offline.ts', 'worker.ts'];

/** Folders that may import an entry point. The other entry points are started by file name. */
const MAY_START: Readonly<Record<string, readonly string[]>> = {
  'main.ts': ['cli/'],
  'offline.ts': ['cli/'],
  'worker.ts': [],
};

/** Where a package may be imported: folders, which end in a slash, and files. */
const PACKAGE_HOMES: Readonly<Record<string, readonly string[]>> = {
  '@langchain/core': ['langchain/'],
  '@nats-io/jetstream': ['cluster/service/'],
  '@nats-io/nats-core': ['cluster/service/'],
  '@nats-io/transport-node': ['cluster/service/nats-login.ts'],
  '@opentelemetry/api': ['platform/tracing.ts'],
  '@opentelemetry/exporter-trace-otlp-http': ['platform/tracing.ts'],
  '@opentelemetry/resources': ['platform/tracing.ts'],
  '@opentelemetry/sdk-trace-base': ['platform/tracing.ts'],
  '@tensorflow/tfjs-backend-wasm': [
    'platform/wasm-backend.ts',
    'platform/native-products.ts',
    'engine/tensor/',
  ],
  '@tensorflow/tfjs-core': [
    'platform/wasm-backend.ts',
    'platform/native-products.ts',
    'engine/tensor/',
    'server/embedding/',
  ],
  '@tensorflow/tfjs-node-gpu': ['platform/tensorflow-binding.ts'],
  aws4fetch: ['cluster/blobs/s3-blobs.ts'],
  'apache-arrow': ['formats/arrow/', 'segment/', 'client/arrow.ts', 'cli/'],
  '@zip.js/zip.js': ['readers/npz-file.ts'],
  'csv-parse': ['readers/csv-rows.ts'],
  commander: ['cli/'],
  fastify: ['server/'],
  h5wasm: ['readers/', 'cli/files/file-source.ts'],
  jose: ['server/auth/'],
  'parquet-wasm': ['readers/', 'cli/files/file-source.ts', 'console/views/import/browser-file.ts'],
  pino: ['main.ts'],
  piscina: ['platform/pool.ts', 'platform/task-queue.ts'],
  'prom-client': ['platform/metrics.ts'],
  re2js: ['filter/pattern.ts'],
  'snowball-stemmers': ['inverted/analyzer.ts'],
  ulid: ['server/'],
  zod: ['server/', 'platform/settings.ts'],
  zstddec: ['formats/arrow/'],
  // Packages of the console, which is bundled.
  '@ariakit/react': ['console/'],
  '@fontsource-variable/inter': ['console/main.tsx'],
  '@fontsource-variable/jetbrains-mono': ['console/main.tsx'],
  '@tanstack/react-query': ['console/'],
  '@tanstack/react-virtual': ['console/'],
  kdbush: ['console/views/map/'],
  'lucide-react': ['console/'],
  react: ['console/'],
  'react-dom': ['console/main.tsx', 'console/views/vectors/use-scroll-window.ts'],
  uplot: ['console/ui/'],
  wouter: ['console/'],
};

/**
 * Files that may read the environment; all others receive the values. TensorFlow's device
 * sets the variables that its library reads.
 */
const ENVIRONMENT_READERS = ['platform/config.ts', 'cli/', 'platform/tensorflow-binding.ts'];

/** Folders whose code also runs in a browser. */
const WITHOUT_NODE = ['client/', 'console/', 'langchain/', 'readers/'];

/** Every statement and expression that names another module. */
const STATEMENT =
  /^[ \t]*(?:import|export)\b[^'"`;()]*?\bfrom\s*['"](?<from>[^'"]+)['"]|^[ \t]*import\s*['"](?<effect>[^'"]+)['"]|\b(?:import|require|require\.resolve|createRequire\([^)]*\))\(\s*['"](?<call>[^'"]+)['"]/gm;

interface SourceFile {
  /** Path with slashes, relative to src/ or to packages/ and without the package's own `src/`. */
  readonly path: string;
  /** The specifiers that the file imports, as written. */
  readonly imports: readonly string[];
  readonly readsEnvironment: boolean;
}

/** The compiled test is at dist/test; the sources are read where they were written. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const PACKAGES = readdirSync(join(ROOT, 'packages'));
/** The entry points of packages, by the name they are imported under. */
const { compilerOptions } = JSON.parse(readFileSync(join(ROOT, 'tsconfig.json'), 'utf8')) as {
  compilerOptions: { paths: Record<string, readonly string[]> };
};
const ENTRIES = new Map(
  Object.entries(compilerOptions.paths).map(([name, [path]]) => [name, shorten(path!.slice(2))]),
);
const files = readSources();

test('folders import only the folders that they may', () => {
  assertNone(
    files.flatMap(({ path, imports }) =>
      imports.filter(isInside).flatMap((specifier) => {
        const target = resolve(path, specifier);
        return isAllowed(path, target) ? [] : [`${path} imports ${target}`];
      }),
    ),
  );
});

test('the order inside folders names every subfolder', () => {
  assertNone(
    Object.entries(INNER_ORDER).flatMap(([folder, order]) => {
      const entries = readdirSync(join(ROOT, lengthen(folder)), { withFileTypes: true });
      const found = new Set(
        entries.flatMap((entry) => {
          if (entry.isDirectory()) return [entry.name];
          return /\.tsx?$/.test(entry.name) ? ['.'] : [];
        }),
      );
      const named = order.flat();
      return [
        ...[...found].filter((name) => !named.includes(name)).map((name) => `${name} is missing`),
        ...named.filter((name) => !found.has(name)).map((name) => `${name} does not exist`),
      ].map((problem) => `INNER_ORDER.${folder}: ${problem}`);
    }),
  );
});

test('packages are imported only where they may be', () => {
  assertNone(
    files.flatMap(({ path, imports }) =>
      imports
        .filter((specifier) => !isInside(specifier) && !isBuiltin(specifier))
        .flatMap((specifier) => {
          const homes = PACKAGE_HOMES[packageOf(specifier)];
          if (homes === undefined)
            return [`${path} imports ${specifier}, which is not in PACKAGE_HOMES`];
          if (homes.some((home) => isWithin(path, home))) return [];
          return [`${path} imports ${specifier}, which only ${homes.join(', ')} may import`];
        }),
    ),
  );
});

test('code for browsers imports no module of Node, directly or indirectly', () => {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const reached = new Set<string>();
  const reach = (path: string): void => {
    const file = byPath.get(path);
    if (file === undefined || reached.has(path)) return;
    reached.add(path);
    for (const specifier of file.imports.filter(isInside)) reach(resolve(path, specifier));
  };
  for (const { path } of files) {
    if (WITHOUT_NODE.some((folder) => isWithin(path, folder))) reach(path);
  }
  assertNone(
    [...reached].flatMap((path) =>
      byPath
        .get(path)!
        .imports.filter((specifier) => isBuiltin(specifier))
        .map((specifier) => `${path} imports ${specifier}`),
    ),
  );
});

test('only the configuration and the command line read the environment', () => {
  assertNone(
    files
      .filter(({ path, readsEnvironment }) => {
        return readsEnvironment && !ENVIRONMENT_READERS.some((place) => isWithin(path, place));
      })
      .map(({ path }) => `${path} names process.env`),
  );
});

test('files do not import each other in a cycle, type-only imports included', () => {
  const targets = new Map(
    files.map(({ path, imports }) => [
      path,
      imports.filter(isInside).map((specifier) => resolve(path, specifier)),
    ]),
  );
  const finished = new Set<string>();
  const cycles: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) {
      cycles.push([...trail.slice(trail.indexOf(path)), path].join(' → '));
      return;
    }
    if (finished.has(path)) return;
    for (const target of targets.get(path) ?? []) visit(target, [...trail, path]);
    finished.add(path);
  };
  for (const path of targets.keys()) visit(path, []);
  assertNone(cycles);
});

test('every import names a file that exists', () => {
  const known = new Set(files.map(({ path }) => path));
  assertNone(
    files.flatMap(({ path, imports }) =>
      imports
        .filter(isInside)
        .map((specifier) => resolve(path, specifier))
        .filter((target) => !known.has(target) && !existsSync(join(ROOT, lengthen(target))))
        .map((target) => `${path} imports ${target}`),
    ),
  );
});

test('the rules for folders allow and refuse sample imports', () => {
  const cases: readonly [from: string, to: string, allowed: boolean][] = [
    ['server/app.ts', 'database/api.ts', true],
    ['server/app.ts', 'common/errors.ts', true],
    ['server/app.ts', 'server/schemas/query.ts', true],
    ['server/app.ts', 'segment/segment.ts', false],
    ['database/database.ts', 'server/app.ts', false],
    ['segment/segment.ts', 'storage/store.ts', false],
    ['client/types.ts', 'server/schemas/query.ts', false],
    ['console/main.tsx', 'client/client.ts', true],
    ['server/app.ts', 'client/client.ts', false],
    ['common/errors.ts', 'common/types.ts', true],
    ['common/errors.ts', 'server/app.ts', false],
    ['common/errors.ts', 'main.ts', false],
    ['main.ts', 'storage/record-store.ts', true],
    ['worker.ts', 'filter/evaluate-task.ts', true],
    ['cli/serve.ts', 'main.ts', true],
    ['server/app.ts', 'main.ts', false],
    ['cli/commands/selftest.ts', 'tools/selftest/selftest.ts', true],
    ['tools/selftest/contract.ts', 'engine/core/engine.ts', true],
    ['engine/choose-engine.ts', 'tools/selftest/contract.ts', false],
    ['cli/commands/selftest.ts', 'engine/core/engine.ts', false],
    ['engine/simd/simd-engine.ts', 'engine/core/engine.ts', true],
    ['engine/core/engine.ts', 'engine/simd/simd-engine.ts', false],
    ['engine/tensor/tensor-engine.ts', 'engine/choose-engine.ts', false],
    ['engine/choose-engine.ts', 'engine/simd/simd-engine.ts', true],
    ['engine/simd/simd-engine.ts', 'engine/cuda/cuda-engine.ts', false],
    ['unknown/file.ts', 'common/errors.ts', false],
    ['server/app.ts', 'unknown/file.ts', false],
  ];
  for (const [from, to, allowed] of cases) {
    assert.equal(isAllowed(from, to), allowed, `${from} → ${to}`);
  }
});

test('imports are found in statements of every form', () => {
  const text = `
    import fastify, { type FastifyInstance } from 'fastify';
    import type { A } from "./a.js";
    import { type B, type C } from './b.js';
    import './effect.js';
    export { d } from './d.js';
    export type * from './e.js';
    import {
      f,
    } from './f.js';
    // import { no } from './no.js';
    /* import { no } from './no.js'; */
    const g = await import('./g.js');
    const h = createRequire(import.meta.url)('h');
    const i = require.resolve('i/j');
    const text = "from nowhere";
    type K = import('./k.js').K;
  `;
  assert.deepEqual(
    importsOf(text),
    'fastify ./a.js ./b.js ./effect.js ./d.js ./e.js ./f.js ./g.js h i/j ./k.js'.split(' '),
  );
});

function isAllowed(from: string, to: string): boolean {
  const fromFolder = folderOf(from);
  const toFolder = folderOf(to);
  const isEntryPoint = ENTRY_POINTS.includes(from);
  if (fromFolder !== undefined && ALLOWED_IMPORTS[fromFolder] === undefined) return false;
  if (toFolder === undefined) {
    return MAY_START[to] === undefined || MAY_START[to].some((place) => isWithin(from, place));
  }
  if (ALLOWED_IMPORTS[toFolder] === undefined) return false;
  if (fromFolder === undefined) return isEntryPoint;
  if (fromFolder === toFolder) return isAllowedInside(fromFolder, from, to);
  return ALLOWED_IMPORTS[fromFolder]!.includes(toFolder);
}

/** Whether a file may import another file in the same folder of src/. */
function isAllowedInside(folder: string, from: string, to: string): boolean {
  const order = INNER_ORDER[folder];
  const [fromPart, toPart] = [subfolderOf(from), subfolderOf(to)];
  if (order === undefined || fromPart === toPart) return true;
  const rowOf = (part: string) => order.findIndex((row) => row.includes(part));
  return rowOf(toPart) !== -1 && rowOf(toPart) < rowOf(fromPart);
}

/** The subfolder that contains the file, or `.` for a file directly in its folder of src/. */
function subfolderOf(path: string): string {
  const [, subfolder, ...rest] = path.split('/');
  return rest.length === 0 ? '.' : subfolder!;
}

/** The folder of src/ that contains the file; undefined for a file directly in src/. */
function folderOf(path: string): string | undefined {
  const slash = path.indexOf('/');
  return slash === -1 ? undefined : path.slice(0, slash);
}

/** Whether the path equals `place` or, if `place` is a folder, lies inside it. */
function isWithin(path: string, place: string): boolean {
  return place.endsWith('/') ? path.startsWith(place) : path === place;
}

/** Whether the import refers to a file of this repository. */
function isInside(specifier: string): boolean {
  return specifier.startsWith('.') || ENTRIES.has(specifier);
}

function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

/** Resolves an import to a path, without Vite's suffixes such as `?worker`, which only say how to load the module. */
function resolve(from: string, specifier: string): string {
  const entry = ENTRIES.get(specifier);
  if (entry !== undefined) return entry;
  const path = shorten(join(dirname(lengthen(from)), specifier.replace(/\?\w+$/, '')));
  const component = path.replace(/\.js$/, '.tsx');
  return existsSync(join(ROOT, lengthen(component))) ? component : path.replace(/\.js$/, '.ts');
}

/** Shortens `src/app.ts` to `app.ts` and `packages/client/src/client.ts` to `client/client.ts`. */
function shorten(path: string): string {
  return path
    .replaceAll('\\', '/')
    .replace(/^(src|packages(?=\/[^/]+\/src\/))\//, '')
    .replace(/^(\w+)\/src\//, '$1/');
}

/** Reverses `shorten`: returns the path relative to the repository. */
function lengthen(path: string): string {
  const [folder, ...rest] = path.split('/');
  return PACKAGES.includes(folder!) ? join('packages', folder!, 'src', ...rest) : join('src', path);
}

function readSources(): SourceFile[] {
  const folders = ['src', ...PACKAGES.map((name) => `packages/${name}/src`)];
  return folders
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
        .filter((path) => /\.tsx?$/.test(path))
        .map((path) => join(folder, path)),
    )
    .map((path) => {
      const text = readFileSync(join(ROOT, path), 'utf8');
      return {
        path: shorten(path),
        imports: importsOf(text),
        readsEnvironment: /\bprocess\.env\b/.test(text),
      };
    })
    .sort((left, right) => (left.path < right.path ? -1 : 1));
}

function importsOf(text: string): string[] {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^[ \t]*\/\/.*$/gm, '');
  return [...code.matchAll(STATEMENT)].map(
    ({ groups }) => (groups!.from ?? groups!.effect ?? groups!.call)!,
  );
}

function assertNone(violations: readonly string[]): void {
  assert.ok(files.length > 0, `found no source below ${ROOT}`);
  assert.equal(violations.length, 0, `\n  ${violations.join('\n  ')}\n`);
}
