// Installs the tensorflow engine's dependencies into build/tensorflow: TensorFlow's binding for Node,
// compiled against the library of a current TensorFlow for Python. The library that the binding's own
// package downloads is years old.
//
//   node scripts/install-tensorflow.mjs                  for the GPU if NVIDIA's driver is found, else the CPU
//   node scripts/install-tensorflow.mjs --variant cpu    cpu or gpu
//   … --if-possible                                      on failure, prints one line and exits with 0
//   … --force                                            reinstalls even if nothing has changed
//
// Requires npm, Python with pip and venv, and a C++ compiler. Needs 1 GB of disk space for the CPU, about 4 GB
// for the GPU. Downloads use the configuration of npm and pip.

import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = join(root, 'build', 'tensorflow');

const PACKAGE = '@tensorflow/tfjs-node-gpu';

/** The pip requirements: any version with the C interface of TensorFlow 2. */
const VARIANTS = {
  cpu: { requirement: 'tensorflow-cpu>=2.16,<3', withDependencies: false },
  gpu: { requirement: 'tensorflow[and-cuda]>=2.16,<3', withDependencies: true },
};

/** Directory of the libraries. The binding finds them through its rpath. */
const LIBRARIES = 'site';

/**
 * Python script that unpacks the wheels: TensorFlow's two libraries, the CUDA libraries for the GPU, and
 * the headers of the C interface. The libraries rely on the layout of the wheels to find each other.
 */
const UNPACK = `
import pathlib, re, sys, zipfile
wanted = re.compile(
    r'tensorflow/libtensorflow_(cc|framework)\\.so\\.2$'
    r'|nvidia/.*\\.so(\\.[0-9.]+)?$'
    r'|tensorflow/include/(tensorflow/c|tensorflow/core/platform|xla/tsl|tsl)/.*\\.h$'
)
for wheel in pathlib.Path(sys.argv[1]).glob('*.whl'):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if wanted.match(name):
                archive.extract(name, sys.argv[2])
`;

class InstallError extends Error {}

const { variant, isOptional, isForced } = parseArguments(process.argv.slice(2));
try {
  install();
} catch (error) {
  if (!(error instanceof InstallError)) throw error;
  if (isOptional) {
    say(`TensorFlow was not installed (${error.message}); another engine will be used`);
  } else {
    console.error(`sagitta: ${error.message}`);
    process.exitCode = 1;
  }
}

function parseArguments(args) {
  const options = {
    variant: { type: 'string' },
    'if-possible': { type: 'boolean', default: false },
    force: { type: 'boolean', default: false },
  };
  try {
    const { values } = parseArgs({ args, options });
    const usual = ['/dev/nvidiactl', '/dev/dxg'].some(existsSync) ? 'gpu' : 'cpu';
    const named = values.variant ?? usual;
    if (!(named in VARIANTS)) throw new Error(`Expected --variant cpu or gpu; found '${named}'`);
    return { variant: named, isOptional: values['if-possible'], isForced: values.force };
  } catch (error) {
    console.error(
      `${error.message}. See the head of scripts/install-tensorflow.mjs for its arguments.`,
    );
    process.exit(2);
  }
}

function install() {
  const stamp = JSON.stringify({ variant, version: packageVersion(), script: ownText() });
  const stampFile = join(target, '.installed');
  if (!isForced && existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) {
    say(`TensorFlow for the ${variant.toUpperCase()} is installed in build/tensorflow`);
    return;
  }
  if (process.platform !== 'linux') {
    throw new InstallError(`Expected Linux, which TensorFlow needs; found ${process.platform}`);
  }
  const compiler = findCompiler();
  mkdirSync(dirname(target), { recursive: true });
  // The target's parent directory, so that the result can be renamed into place.
  const scratch = mkdtempSync(join(dirname(target), '.tensorflow-'));
  try {
    const fresh = join(scratch, 'tensorflow');
    mkdirSync(fresh);
    const headers = fetchLibrary(scratch, fresh);
    compile(compiler, fetchPackage(fresh), headers);
    const version = verifyInstallation(fresh);
    writeFileSync(join(fresh, '.installed'), stamp);
    rmSync(target, { recursive: true, force: true });
    renameSync(fresh, target);
    say(`TensorFlow ${version} for the ${variant.toUpperCase()} is installed in build/tensorflow`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Unpacks TensorFlow's Python libraries into `fresh`. Returns the directory with their headers. */
function fetchLibrary(scratch, fresh) {
  const unpacked = join(scratch, 'unpacked');
  const from = downloadWheels(scratch);
  say('unpacking the libraries');
  run('python3', ['-c', UNPACK, from, unpacked], {
    failure: 'the wheels cannot be unpacked',
  });
  rmSync(from, { recursive: true });
  const headers = join(unpacked, 'tensorflow', 'include');
  const kept = join(scratch, 'headers');
  renameSync(headers, kept);
  renameSync(unpacked, join(fresh, LIBRARIES));
  return kept;
}

/** Returns the directory that holds the wheels. */
function downloadWheels(scratch) {
  const { requirement, withDependencies } = VARIANTS[variant];
  const python = join(scratch, 'python');
  const downloaded = join(scratch, 'wheels');
  run('python3', ['-m', 'venv', python], { failure: 'python3 with venv is required' });
  say(`downloading ${requirement} with pip`);
  const pip = ['-m', 'pip', 'download', '--quiet', '--disable-pip-version-check'];
  const only = ['--only-binary', ':all:', ...(withDependencies ? [] : ['--no-deps'])];
  run(join(python, 'bin/python'), [...pip, ...only, '--dest', downloaded, requirement], {
    failure: `pip cannot download ${requirement}`,
  });
  return downloaded;
}

/**
 * Installs the version of package.json, with the packages that package-lock.json has at its versions. Returns the
 * directory of the package.
 */
function fetchPackage(fresh) {
  say(`downloading ${PACKAGE} ${packageVersion()} with npm`);
  const manifest = {
    name: 'sagitta-tensorflow',
    private: true,
    dependencies: { [PACKAGE]: packageVersion() },
  };
  const lock = readJson('package-lock.json');
  const locked = { ...lock, name: manifest.name, packages: { ...lock.packages, '': manifest } };
  writeFileSync(join(fresh, 'package.json'), JSON.stringify(manifest, null, 2));
  writeFileSync(join(fresh, 'package-lock.json'), JSON.stringify(locked, null, 2));
  // The install scripts would download the old library.
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  run('npm', ['install', ...quiet], {
    cwd: fresh,
    failure: `npm cannot download ${PACKAGE}`,
  });
  const modules = join(fresh, 'node_modules');
  // Source maps make up most of the download and are not used.
  for (const path of readdirSync(modules, { recursive: true })) {
    if (path.endsWith('.map')) rmSync(join(modules, path));
  }
  return join(modules, PACKAGE);
}

function compile(compiler, packageFolder, headers) {
  const nodeHeaders = join(root, 'node_modules/node-api-headers/include');
  if (!existsSync(nodeHeaders)) {
    throw new InstallError('node_modules/node-api-headers is missing: run `npm ci`');
  }
  say(`compiling the binding with ${compiler}`);
  const folder = join(packageFolder, 'lib/napi-v8');
  mkdirSync(folder, { recursive: true });
  const site = join(packageFolder, '../../..', LIBRARIES);
  const libraries = ['cc', 'framework'].map((name) =>
    join(site, 'tensorflow', `libtensorflow_${name}.so.2`),
  );
  // The library runs its own threads, so it must stay loaded when a worker thread unloads the binding.
  const link = ['-Wl,-z,nodelete', `-Wl,-rpath,$ORIGIN/../../../../../${LIBRARIES}/tensorflow`];
  run(
    compiler,
    [
      ...['-std=c++17', '-O2', '-fPIC', '-shared', '-fvisibility=hidden', '-w', '-DNAPI_VERSION=8'],
      ...[packageFolder, headers, nodeHeaders].flatMap((path) => ['-isystem', path]),
      ...['backend', 'binding'].map((name) => join(packageFolder, `binding/tfjs_${name}.cc`)),
      ...libraries,
      ...link,
      ...['-o', join(folder, 'tfjs_binding.node')],
    ],
    { failure: 'the binding failed to compile' },
  );
}

/** Computes a matrix product with the new installation. Returns the library's version. */
function verifyInstallation(fresh) {
  const script = `
    require('node:util').isNullOrUndefined ??= (value) => value == null;
    const tf = require('${PACKAGE}');
    const [sum] = tf.matMul(tf.fill([1, 8], 2), tf.fill([8, 1], 3)).dataSync();
    if (sum !== 48) throw new Error('Expected 48 as the test product; found ' + sum);
    console.log(tf.backend().binding.TF_Version);`;
  const output = run(process.execPath, ['-e', script], {
    cwd: fresh,
    env: { ...process.env, TF_CPP_MIN_LOG_LEVEL: '2', TF_FORCE_GPU_ALLOW_GROWTH: 'true' },
    failure: 'the compiled binding failed to load',
  });
  return output.trim().split('\n').at(-1);
}

function findCompiler() {
  const candidates = [process.env.CXX, 'c++', 'g++', 'clang++'].filter(Boolean);
  const found = candidates.find((command) => spawnSync(command, ['--version']).status === 0);
  if (found) return found;
  throw new InstallError(`Expected a C++ compiler; found none of ${candidates.join(', ')}`);
}

/** Returns the output of the command. Throws InstallError with its last error line if it fails. */
function run(command, words, { failure, ...options }) {
  const done = spawnSync(command, words, { encoding: 'utf8', maxBuffer: 2 ** 26, ...options });
  if (done.status === 0) return done.stdout;
  const lines = `${done.stderr ?? ''}`.trim().split('\n');
  const last = lines.findLast((line) => /error/i.test(line)) ?? lines.at(-1);
  throw new InstallError(`${failure}: ${done.error?.message ?? last}`);
}

function packageVersion() {
  return readJson('package.json').peerDependencies[PACKAGE];
}

function readJson(name) {
  return JSON.parse(readFileSync(join(root, name), 'utf8'));
}

function ownText() {
  return readFileSync(fileURLToPath(import.meta.url), 'utf8');
}

function say(line) {
  console.log(`sagitta: ${line}`);
}
