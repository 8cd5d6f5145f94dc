// Installs a NATS server into build/nats for the cluster tests. It comes from Debian forky and needs only glibc 2.34;
// the version in Debian 12 cannot sync every message before acknowledging it.
//
//   node scripts/install-nats.mjs
//   … --if-possible                                on failure, prints one line and exits with 0

import { fileURLToPath } from 'node:url';
import { installDebianPrograms } from './debian-programs.mjs';

installDebianPrograms({
  packageName: 'nats-server',
  suite: 'forky',
  programs: ['nats-server'],
  target: fileURLToPath(new URL('../build/nats', import.meta.url)),
});
