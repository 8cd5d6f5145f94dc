// Keeps the arrows of docs/ARCHITECTURE.md: which folder may import which, which package lives
// where, and that files do not import each other in a circle.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/** What a folder of src/ may import beside itself and the files at the root of src/. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  http: ['database', 'arrow', 'parquet'],
  database: ['segment', 'filter', 'engine', 'scheduler', 'store'],
  segment: ['arrow'],
  arrow: [],
  parquet: [],
  filter: [],
  engine: [],
  selftest: ['engine'],
  scheduler: [],
  store: [],
  cli: ['client', 'arrow', 'selftest'],
  console: ['client'],
  client: [],
  langchain: ['client'],
};

/** Arrows that carry types only, and so are gone when the program runs. */
const TYPE_ARROWS: Readonly<Record<string, readonly string[]>> = {
  client: ['http/schemas/'],
};

/** Root files that put a process or a thread together; nobody else at the root imports a folder. */
const COMPOSITION_ROOTS = ['main.ts', 'offline.ts', 'worker.ts'];

/** Who may import a composition root; the others are started by their file name. */
const MAY_START: Readonly<Record<string, readonly string[]>> = {
  'main.ts': ['cli/'],
  'offline.ts': ['cli/'],
  'worker.ts': [],
};

/** Where a package may be imported: folders end in a slash, files are whole. */
const PACKAGE_HOMES: Readonly<Record<string, readonly string[]>> = {
  '@fastify/swagger': ['http/'],
  '@fastify/swagger-ui': ['http/'],
  '@langchain/core': ['langchain/'],
  '@opentelemetry/api': ['tracing.ts'],
  '@opentelemetry/exporter-trace-otlp-http': ['tracing.ts'],
  '@opentelemetry/resources': ['tracing.ts'],
  '@opentelemetry/sdk-trace-base': ['tracing.ts'],
  '@tensorflow/tfjs-backend-wasm': ['engine/wasm-device.ts'],
  '@tensorflow/tfjs-core': ['engine/wasm-device.ts'],
  '@tensorflow/tfjs-node-gpu': ['engine/tensorflow-device.ts'],
  'apache-arrow': ['arrow/', 'segment/', 'client/arrow.ts', 'cli/'],
  'csv-parse': ['cli/'],
  commander: ['cli/'],
  fastify: ['http/'],
  h5wasm: ['cli/'],
  jose: ['http/access/access-tokens.ts', 'http/access/key-sets.ts'],
  lmdb: ['store/lmdb-store.ts'],
  'openapi-types': ['http/'],
  'parquet-wasm': ['cli/'],
  pino: ['main.ts'],
  piscina: ['pool.ts'],
  'prom-client': ['metrics.ts'],
  ulid: ['http/'],
  zod: ['http/', 'settings.ts'],
};

/**
 * Who reads the environment; everybody else is handed what it says. TensorFlow's device writes into
 * it what its library reads.
 */
const ENVIRONMENT_READERS = ['config.ts', 'cli/', 'engine/tensorflow-device.ts'];

/** Folders that run where node may not be: in a browser. */
const WITHOUT_NODE = ['client/', 'console/', 'langchain/'];

/** Every way to name another module. */
const STATEMENT =
  /^[ \t]*(?:import|export)\b(?<clause>[^'"`;()]*?)\bfrom\s*['"](?<from>[^'"]+)['"]|^[ \t]*import\s*['"](?<effect>[^'"]+)['"]|\b(?:import|require|require\.resolve|createRequire\([^)]*\))\(\s*['"](?<call>[^'"]+)['"]/gm;

interface Import {
  /** As written. */
  readonly specifier: string;
  readonly isTypeOnly: boolean;
}

interface SourceFile {
  /** Below src/, with slashes. */
  readonly path: string;
  readonly imports: readonly Import[];
  readonly readsEnvironment: boolean;
}

/** The compiled test is at dist/test; the sources are read where they were written. */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SOURCE = join(ROOT, 'src');
const files = readSources();

test('imports follow the arrows between the folders', () => {
  assertNone(
    files.flatMap(({ path, imports }) =>
      imports.filter(isRelative).flatMap((found) => {
        const target = resolve(path, found.specifier);
        return isAllowed(path, target, found.isTypeOnly) ? [] : [`${path} imports ${target}`];
      }),
    ),
  );
});

test('every package has one home', () => {
  assertNone(
    files.flatMap(({ path, imports }) =>
      imports
        .filter((found) => !isRelative(found) && !isBuiltin(found.specifier))
        .flatMap(({ specifier }) => {
          const homes = PACKAGE_HOMES[packageOf(specifier)];
          if (homes === undefined) return [`${path} imports ${specifier}, which has no home`];
          if (homes.some((home) => isWithin(path, home))) return [];
          return [`${path} imports ${specifier}, whose home is ${homes.join(', ')}`];
        }),
    ),
  );
});

test('what may run in a browser imports nothing of node', () => {
  assertNone(
    files
      .filter(({ path }) => WITHOUT_NODE.some((folder) => isWithin(path, folder)))
      .flatMap(({ path, imports }) =>
        imports
          .filter(({ specifier }) => isBuiltin(specifier))
          .map(({ specifier }) => `${path} imports ${specifier}`),
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

test('no file imports itself by way of others', () => {
  const targets = new Map(
    files.map(({ path, imports }) => [
      path,
      imports
        .filter((found) => isRelative(found) && !found.isTypeOnly)
        .map(({ specifier }) => resolve(path, specifier)),
    ]),
  );
  const finished = new Set<string>();
  const circles: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) {
      circles.push([...trail.slice(trail.indexOf(path)), path].join(' → '));
      return;
    }
    if (finished.has(path)) return;
    for (const target of targets.get(path) ?? []) visit(target, [...trail, path]);
    finished.add(path);
  };
  for (const path of targets.keys()) visit(path, []);
  assertNone(circles);
});

test('every import names a file that exists', () => {
  const known = new Set(files.map(({ path }) => path));
  assertNone(
    files.flatMap(({ path, imports }) =>
      imports
        .filter(isRelative)
        .map(({ specifier }) => resolve(path, specifier))
        .filter((target) => !known.has(target))
        .map((target) => `${path} imports ${target}`),
    ),
  );
});

test('the rules know forbidden arrows from allowed ones', () => {
  const cases: readonly [from: string, to: string, isTypeOnly: boolean, allowed: boolean][] = [
    ['http/app.ts', 'database/api.ts', false, true],
    ['http/app.ts', 'errors.ts', false, true],
    ['http/app.ts', 'http/schemas/query.ts', false, true],
    ['http/app.ts', 'segment/segment.ts', false, false],
    ['database/database.ts', 'http/app.ts', true, false],
    ['segment/segment.ts', 'store/store.ts', true, false],
    ['client/types.ts', 'http/schemas/query.ts', true, true],
    ['client/types.ts', 'http/schemas/query.ts', false, false],
    ['client/types.ts', 'http/app.ts', true, false],
    ['errors.ts', 'types.ts', false, true],
    ['errors.ts', 'http/app.ts', true, false],
    ['errors.ts', 'main.ts', false, false],
    ['main.ts', 'store/lmdb-store.ts', false, true],
    ['worker.ts', 'filter/evaluate-task.ts', false, true],
    ['cli/serve.ts', 'main.ts', false, true],
    ['http/app.ts', 'main.ts', false, false],
    ['cli/selftest.ts', 'selftest/selftest.ts', false, true],
    ['selftest/contract.ts', 'engine/engine.ts', false, true],
    ['selftest/contract.ts', 'segment/segment.ts', true, false],
    ['engine/choose-engine.ts', 'selftest/contract.ts', true, false],
    ['cli/selftest.ts', 'engine/engine.ts', true, false],
    ['unknown/file.ts', 'errors.ts', false, false],
    ['http/app.ts', 'unknown/file.ts', false, false],
  ];
  for (const [from, to, isTypeOnly, allowed] of cases) {
    assert.equal(isAllowed(from, to, isTypeOnly), allowed, `${from} → ${to}`);
  }
});

test('imports are found however they are written', () => {
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
    importsOf(text).map(({ specifier, isTypeOnly }) => `${isTypeOnly ? 'type ' : ''}${specifier}`),
    [
      'fastify',
      'type ./a.js',
      'type ./b.js',
      './effect.js',
      './d.js',
      'type ./e.js',
      './f.js',
      './g.js',
      'h',
      'i/j',
      './k.js',
    ],
  );
});

function isAllowed(from: string, to: string, isTypeOnly: boolean): boolean {
  const fromFolder = folderOf(from);
  const toFolder = folderOf(to);
  const isComposition = COMPOSITION_ROOTS.includes(from);
  if (fromFolder !== undefined && ARROWS[fromFolder] === undefined) return false;
  if (toFolder === undefined) {
    return MAY_START[to] === undefined || MAY_START[to].some((place) => isWithin(from, place));
  }
  if (ARROWS[toFolder] === undefined) return false;
  if (fromFolder === undefined) return isComposition;
  if (fromFolder === toFolder || ARROWS[fromFolder]!.includes(toFolder)) return true;
  return isTypeOnly && (TYPE_ARROWS[fromFolder] ?? []).some((place) => isWithin(to, place));
}

/** Undefined for a file at the root of src/. */
function folderOf(path: string): string | undefined {
  const slash = path.indexOf('/');
  return slash === -1 ? undefined : path.slice(0, slash);
}

/** Whether the file is the place, or lies in it where the place is a folder. */
function isWithin(path: string, place: string): boolean {
  return place.endsWith('/') ? path.startsWith(place) : path === place;
}

function isRelative({ specifier }: Import): boolean {
  return specifier.startsWith('.');
}

function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

function resolve(from: string, specifier: string): string {
  return join(dirname(from), specifier).replaceAll('\\', '/').replace(/\.js$/, '.ts');
}

function readSources(): SourceFile[] {
  return readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => {
      const text = readFileSync(join(SOURCE, path), 'utf8');
      return {
        path: path.replaceAll('\\', '/'),
        imports: importsOf(text),
        readsEnvironment: /\bprocess\.env\b/.test(text),
      };
    })
    .sort((left, right) => (left.path < right.path ? -1 : 1));
}

function importsOf(text: string): Import[] {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^[ \t]*\/\/.*$/gm, '');
  return [...code.matchAll(STATEMENT)].map(({ groups }) => ({
    specifier: (groups!.from ?? groups!.effect ?? groups!.call)!,
    isTypeOnly: groups!.clause !== undefined && isTypeClause(groups!.clause),
  }));
}

/** `type { A }`, `type * as a`, or braces in which every name says `type`. */
function isTypeClause(clause: string): boolean {
  if (/^\s*type\b/.test(clause)) return true;
  const names = /^\s*\{(?<names>[^}]*)\}\s*$/.exec(clause)?.groups?.names;
  if (names === undefined) return false;
  const each = names.split(',').filter((name) => name.trim() !== '');
  return each.length > 0 && each.every((name) => /^\s*type\s/.test(name));
}

function assertNone(violations: readonly string[]): void {
  assert.ok(files.length > 0, `found no source below ${SOURCE}`);
  assert.equal(violations.length, 0, `\n  ${violations.join('\n  ')}\n`);
}
