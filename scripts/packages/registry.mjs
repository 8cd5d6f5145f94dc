// Publishes packed packages to npm's registry, those that it does not have yet: a publication that was cut off
// can be run again. Nothing is uploaded before all names and versions have been looked up.

import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';

/**
 * A package as `npm pack --json` describes it, and where its archive is.
 *
 * @typedef {{ name: string, version: string, integrity: string, archive: string }} Packed
 */

/**
 * Publishes what is missing, in this order. Throws before the first upload when any package may not be published,
 * with all reasons. A dry run reports them, and lets npm check the archives.
 *
 * @param {readonly Packed[]} packages
 * @param {{ repositoryUrl: string | undefined, words: readonly string[], isDryRun: boolean }} options
 *   `words` are options of `npm publish`.
 */
export async function publishMissing(packages, { repositoryUrl, words, isDryRun }) {
  const { published, problems } = await lookUp(packages, repositoryUrl);
  if (problems.length > 0) {
    const reasons = `nothing was uploaded:\n${problems.map((each) => `- ${each}`).join('\n')}`;
    if (!isDryRun) throw new Error(reasons);
    console.error(`publish: without --dry-run this ends here: ${reasons}`);
  }
  for (const packed of packages) {
    const { name, version, archive } = packed;
    if (published.includes(packed)) {
      console.log(`publish: ${name} ${version} is in the registry already, with this content`);
      continue;
    }
    const { error, output } = await npm(['publish', archive, '--access', 'public', ...words]);
    if (error !== null) {
      const failure = `npm could not publish ${name} ${version}:\n${output}`;
      // npm itself refuses what has been reported above.
      if (problems.length === 0) throw new Error(failure);
      console.error(`publish: ${failure}`);
      continue;
    }
    console.log(`publish: ${name} ${version}${isDryRun ? ', not uploaded' : ' is published'}`);
  }
}

/** What the registry has with this content, and why none of the others may be published. */
async function lookUp(packages, repositoryUrl) {
  const published = [];
  const problems = [];
  for (const packed of packages) {
    try {
      const found = await compare(packed, repositoryUrl);
      if (found === 'same') published.push(packed);
      else if (found !== 'missing') problems.push(found);
    } catch (error) {
      problems.push(error.message);
    }
  }
  return { published, problems };
}

/** `missing`, `same`, or why the package may not be published: others have the name, or another content. */
async function compare({ name, version, integrity }, repositoryUrl) {
  const newest = await view(name);
  if (newest === undefined) return 'missing';
  const owner = newest.repository?.url;
  // What others have published under the name would be installed by users of older versions.
  if (repositoryUrl === undefined || owner !== repositoryUrl) {
    return (
      `the name ${name} is taken: the registry has version ${newest.version} of it, from ` +
      `${owner ?? 'no repository'}, expected ${repositoryUrl ?? 'no such package'}; ` +
      'publish under another name, such as one in a scope that you own'
    );
  }
  const published = await view(`${name}@${version}`);
  if (published === undefined) return 'missing';
  const found = published.dist.integrity;
  if (found === integrity) return 'same';
  return (
    `${name} ${version} is in the registry with another content: found ${found}, expected ` +
    `${integrity}; publish yours as another version`
  );
}

/** The manifest of a version in the registry, or undefined when there is none. */
async function view(specifier) {
  // Fewer retries than by default, which take minutes where there is no network.
  const retries = ['--fetch-retries', '1', '--fetch-retry-mintimeout', '1000'];
  const { error, stdout, output } = await npm([
    'view',
    specifier,
    '--json',
    '--prefer-online',
    ...retries,
  ]);
  if (error === null) return stdout.trim() === '' ? undefined : JSON.parse(stdout);
  if (output.includes('E404')) return undefined;
  throw new Error(`npm could not look up ${specifier}:\n${output}`);
}

/** Runs outside the checkout, whose workspaces npm would look at. */
function npm(words) {
  const options = { cwd: tmpdir(), encoding: 'utf8', maxBuffer: 16 * 1024 * 1024 };
  return new Promise((resolve) => {
    execFile('npm', words, options, (error, stdout, stderr) =>
      resolve({ error, stdout, output: stdout + stderr }),
    );
  });
}
