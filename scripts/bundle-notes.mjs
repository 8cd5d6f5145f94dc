// What a bundle says about itself: how it is run, which C library it needs, and whose parts are in
// it under which licences.

/** `parts` are binaries: { path, glibc } with the newest version that each asks for, as [2, n]. */
export function writeReadme({ name, nodeVersion, parts, hasCuda }) {
  const needed = newestGlibc(parts.filter(({ isOptional }) => !isOptional));
  const rows = parts.map(({ path, glibc, isOptional }) => {
    return `| \`${path}\` | ${textOf(glibc)} | ${isOptional ? 'another engine answers' : 'nothing starts'} |`;
  });
  return `# ${name}

Unpacked, this folder is the whole service with its own Node ${nodeVersion}: no installation and no
network. It may be read-only, and a link to \`bin/sagitta\` may stand anywhere.

    bin/sagitta serve --data-dir /var/lib/sagitta
    bin/sagitta demo
    bin/sagitta bench
    bin/sagitta --help

It runs on x86-64 Linux with glibc ${textOf(needed)} or later and the system's libstdc++ (GCC 11 or later):
Ubuntu 22.04, Debian 12, RHEL 9, and what is newer. What each part asks of glibc:

| part | glibc | without it |
| --- | --- | --- |
${rows.join('\n')}

${
  hasCuda
    ? 'The kernels for CUDA are in it; they need the driver of an NVIDIA GPU and nothing else.'
    : 'No kernels for CUDA are in it: it was built without a CUDA compiler, and answers on the CPU.'
}
\`scripts/build-kernels.mjs\` builds the kernels for this machine with its own C++ compiler
(\`runtime/node scripts/build-kernels.mjs\`). Settings are in \`docs/configuration.md\`; licences of
the parts in \`THIRD-PARTY.md\`.
`;
}

export function writeThirdParty({ nodeVersion, packages, hasCuda }) {
  const rows = packages.map(({ path, version, licence, texts }) => {
    const where = texts.length === 0 ? 'no text in its package' : texts.join(', ');
    return `| ${path.replace(/^.*node_modules\//, '')} | ${version} | ${licence} | ${where} |`;
  });
  const cuda = 'the NVIDIA CUDA runtime, linked into `build/kernels/sagitta-cuda.node`';
  return `# Parts by others

Sagitta itself is under the Apache License 2.0 (\`LICENSE\`, \`NOTICE\`).

- Node.js ${nodeVersion}, \`runtime/node\`: \`runtime/LICENSE\`, which also covers what is inside it.
- The GNU C++ runtime, linked into \`build/kernels/sagitta.node\`: GPL 3 with the GCC Runtime Library
  Exception, which lets programs of any licence carry it.
${hasCuda ? `- ${cuda}: NVIDIA's licence for the CUDA Toolkit.\n` : ''}
| package | version | licence | text |
| --- | --- | --- | --- |
${rows.join('\n')}
`;
}

/** The newest version of glibc of which a binary asks for a symbol, as [major, minor]. */
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

/** Of parts; 2.0 where none asks for any. */
export function newestGlibc(parts) {
  return parts.reduce((best, { glibc }) => (glibc[1] > best[1] ? glibc : best), [2, 0]);
}

function textOf(glibc) {
  return glibc[1] === 0 ? 'any' : glibc.join('.');
}
