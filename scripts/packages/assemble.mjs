// Fills packages/*/dist with the compiled files that the entry points of each package reach, in the folders of
// src. Files are copied, not bundled: declarations stay beside their code, and the bundlers of programs leave out
// what these do not use. Imports of another package's entry point become imports of that package.
//
//   node scripts/packages/assemble.mjs        after `node scripts/build.mjs modules types`

import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const COMPILED = join(root, 'dist', 'src');

/** Folders of src that packages may contain. The others need Node or belong to the server. */
const FOLDERS = ['client', 'common', 'integrations'];

/** The module names in `import … from`, `export … from`, `import '…'` and `import('…')`. */
const IMPORT = /(\bfrom\s*|\bimport\s*\(\s*|^import\s*)(['"])([^'"]+)\2/gm;

const packages = readdirSync(join(root, 'packages')).map(readPackage);
/** Compiled files that are entry points, without their ending: the import that reaches each. */
const entryNames = new Map(
  packages.flatMap(({ entries }) => entries.map(({ module, name }) => [module, name])),
);
for (const described of packages) assemble(described);

function readPackage(folder) {
  const manifest = JSON.parse(readFileSync(join(root, 'packages', folder, 'package.json'), 'utf8'));
  const {
    name,
    exports,
    dependencies = {},
    peerDependencies = {},
    peerDependenciesMeta,
  } = manifest;
  const isOptional = (peer) => peerDependenciesMeta?.[peer]?.optional === true;
  const entries = Object.entries(exports)
    .filter(([, target]) => typeof target === 'object')
    .map(([path, target]) => ({
      module: target.default.replace(/^\.\/dist\//, '').replace(/\.js$/, ''),
      name: join(name, path),
      // An optional package may be missing, so the entry point that everyone imports cannot need it.
      packages: [
        ...Object.keys(dependencies),
        ...Object.keys(peerDependencies).filter((peer) => path !== '.' || !isOptional(peer)),
      ],
    }));
  return { folder, entries };
}

function assemble({ folder, entries }) {
  const target = join(root, 'packages', folder, 'dist');
  rmSync(target, { recursive: true, force: true });
  const own = entries.map(({ module }) => module);
  const written = new Set();
  for (const entry of entries) {
    const found = new Set([`${entry.module}.js`, `${entry.module}.d.ts`]);
    // The iteration visits entries added on the way: imports of imported files.
    for (const path of found) {
      const text = rewrite(readCompiled(path), path, {
        isOwn: (module) => own.includes(module),
        addFile: (imported) => found.add(imported),
        allowed: entry.packages,
      });
      mkdirSync(dirname(join(target, path)), { recursive: true });
      writeFileSync(join(target, path), text);
      written.add(path);
    }
  }
  copyFileSync(join(root, 'LICENSE'), join(root, 'packages', folder, 'LICENSE'));
  console.log(`packages/${folder}: ${written.size} files`);
}

/** The text of a file for a package; `addFile` is called with each file that it imports. */
function rewrite(text, path, { isOwn, addFile, allowed }) {
  // Compiled files keep the comments and names of their sources, so there are no source maps.
  const withoutMap = text.replace(/^\/\/# sourceMappingURL=.*\n?/m, '');
  return withoutMap.replace(IMPORT, (statement, before, quote, specifier) => {
    if (!specifier.startsWith('.')) {
      if (allowed.some((name) => specifier === name || specifier.startsWith(`${name}/`))) {
        return statement;
      }
      throw new Error(`${path} imports ${specifier}, but its package may import ${list(allowed)}`);
    }
    const imported = join(dirname(path), specifier);
    const module = imported.replace(/\.js$/, '');
    if (entryNames.has(module) && !isOwn(module)) {
      const name = entryNames.get(module);
      if (allowed.includes(name)) return `${before}${quote}${name}${quote}`;
      throw new Error(`${path} imports ${imported}, but its package does not depend on ${name}`);
    }
    if (!FOLDERS.includes(imported.split('/')[0])) {
      throw new Error(`${path} imports ${imported}; packages contain only ${list(FOLDERS)} of src`);
    }
    addFile(path.endsWith('.d.ts') ? `${module}.d.ts` : imported);
    return statement;
  });
}

function readCompiled(path) {
  const file = join(COMPILED, path);
  if (existsSync(file)) return readFileSync(file, 'utf8');
  throw new Error(`${relative(root, file)} is missing: run \`node scripts/build.mjs compile\``);
}

function list(names) {
  return names.length === 0 ? 'no other package' : names.join(', ');
}
