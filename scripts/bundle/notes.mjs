// The texts in a bundle: a README with the requirements, and the licences of third-party parts.

/** `parts` are binaries: { path, glibc, isOptional } with the glibc version each requires, as [2, n]. */
export function writeReadme({ name, nodeVersion, parts, hasCuda }) {
  const needed = newestGlibc(parts.filter(({ isOptional }) => !isOptional));
  const rows = parts.map(({ path, glibc, isOptional }) => {
    return `| \`${path}\` | ${textOf(glibc)} | ${isOptional ? 'another engine is used' : 'nothing starts'} |`;
  });
  return `# ${name}

This directory contains the whole server with its own Node ${nodeVersion}; it needs no installation and
no network. It may be read-only, and symbolic links to \`bin/sagitta\` work from anywhere.

    bin/sagitta serve --data-dir /var/lib/sagitta
    bin/sagitta demo
    bin/sagitta bench
    bin/sagitta --help

It runs on ${process.arch === 'x64' ? 'x86-64' : 'ARM64'} Linux with glibc ${textOf(needed)} or later and the system's libstdc++ (GCC 11 or later):
Ubuntu 22.04, Debian 12, RHEL 9 and later. The glibc version that each part requires:

| part | glibc | if unavailable |
| --- | --- | --- |
${rows.join('\n')}

${
  hasCuda
    ? 'The bundle contains the CUDA kernels, which need only the driver of an NVIDIA GPU.'
    : 'The bundle contains no CUDA kernels, since it was built without a CUDA compiler; it runs on the CPU.'
}
\`runtime/node scripts/build-kernels.mjs\` rebuilds the kernels with a C++ compiler of this machine.
Settings are described in \`docs/configuration.md\`, licences of the parts in \`THIRD-PARTY.md\`.
`;
}

export function writeThirdParty({ nodeVersion, packages, hasCuda }) {
  const rows = packages.map(({ path, version, licence, texts }) => {
    const where = texts.length === 0 ? 'not included in the package' : texts.join(', ');
    return `| ${path.replace(/^.*node_modules\//, '')} | ${version} | ${licence} | ${where} |`;
  });
  const cuda = 'the NVIDIA CUDA runtime, linked into `build/kernels/sagitta-cuda.node`';
  return `# Third-party parts

Sagitta itself is under the Apache License 2.0 (\`LICENSE\`, \`NOTICE\`).

- Node.js ${nodeVersion}, \`runtime/node\`: \`runtime/LICENSE\`, which also covers its bundled parts.
- The packages in the files of the console, \`dist/console\`: \`dist/console/third-party.txt\`.
- The GNU C++ runtime, linked into \`build/kernels/sagitta.node\`: GPL 3 with the GCC Runtime Library
  Exception, which permits linking into programs under any licence.
${hasCuda ? `- ${cuda}: NVIDIA's licence for the CUDA Toolkit.\n` : ''}
| package | version | licence | text |
| --- | --- | --- | --- |
${rows.join('\n')}
`;
}

/** The newest glibc symbol version that a binary references, as [major, minor]. */
export function findGlibc(bytes) {
  const marker = Buffer.from('\0GLIBC_2.');
  const versions = [];
  for (let at = bytes.indexOf(marker); at >= 0; at = bytes.indexOf(marker, at + 1)) {
    const start = at + marker.length;
    const [minor] = /^\d*/.exec(bytes.toString('latin1', start, start + 3));
    if (minor !== '') versions.push([2, Number(minor)]);
  }
  return newestGlibc(versions.map((glibc) => ({ glibc })));
}

/** The newest glibc version that any of the parts requires; 2.0 if none. */
export function newestGlibc(parts) {
  return parts.reduce((best, { glibc }) => (glibc[1] > best[1] ? glibc : best), [2, 0]);
}

function textOf(glibc) {
  return glibc[1] === 0 ? 'any' : glibc.join('.');
}
