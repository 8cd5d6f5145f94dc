// Publishes packed packages that npm's registry lacks, so that an interrupted publication can run again. Nothing is
// uploaded until all names and versions have been looked up.

import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';

/**
 * A package as `npm pack --json` describes it, with the path of its archive.
 *
 * @typedef {{ name: string, version: string, integrity: string, archive: string }} Packed
 */

/**
 * Publishes the missing packages in the given order. If any package may not be published, throws with all reasons
 * before the first upload. A dry run reports the reasons and lets npm check the archives.
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
    console.error(`publish: without --dry-run this would fail: ${reasons}`);
  }
  for (const packed of packages) {
    const { name, version, archive } = packed;
    if (published.includes(packed)) {
      console.log(`publish: ${name} ${version} is already in the registry, with the same content`);
      continue;
    }
    const { error, output } = await npm(['publish', archive, '--access', 'public', ...words]);
    if (error !== null) {
      const failure = `npm could not publish ${name} ${version}:\n${output}`;
      // In a dry run, npm also refuses the packages reported above.
      if (problems.length === 0) throw new Error(failure);
      console.error(`publish: ${failure}`);
      continue;
    }
    console.log(`publish: ${name} ${version}${isDryRun ? ' was not uploaded' : ' is published'}`);
  }
}

/** Returns the packages that are published with the same content, and the reasons against publishing the others. */
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

/** Returns `missing`, `same`, or why the package may not be published: the name is taken, or its content differs. */
async function compare({ name, version, integrity }, repositoryUrl) {
  const newest = await view(name);
  if (newest === undefined) return 'missing';
  const owner = newest.repository?.url;
  // If the name belongs to someone else, users of older versions would install their code.
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
    `${name} ${version} is in the registry with different content: found ${found}, expected ` +
    `${integrity}; publish yours as another version`
  );
}

/** The manifest of a version in the registry, or undefined if it is not there. */
async function view(specifier) {
  // The default number of retries takes minutes without a network.
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

/** Runs npm outside the checkout so that it ignores the workspaces. */
function npm(words) {
  const options = { cwd: tmpdir(), encoding: 'utf8', maxBuffer: 16 * 1024 * 1024 };
  return new Promise((resolve) => {
    execFile('npm', words, options, (error, stdout, stderr) =>
      resolve({ error, stdout, output: stdout + stderr }),
    );
  });
}
