/**
 * A process that orders one certificate and prints `published` when it has the certificate. To simulate a kill, it can be told to
 * die at its nth write to the store. Argument: the plan as JSON. Environment: SVC_TLS_STORE, DIE_AT_WRITE.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import type { CertificateSink } from '../../runtime/certificates/certificate-feed.ts';

const dieAt = Number(process.env.DIE_AT_WRITE ?? 0);
const { rename } = fs.promises;
let writes = 0;
fs.promises.rename = async (from, to) => {
	if (++writes === dieAt) process.kill(process.pid, 'SIGKILL');
	await rename(from, to);
};
syncBuiltinESMExports();

const { createCertificateManager } = await import('../../runtime/certificates/manager/certificate-manager.ts');
const sink: CertificateSink = {
	publish: () => console.log('published'),
	drop: () => {},
	setChallenges: async () => {},
};
const manager = createCertificateManager({
	sink,
	workingDirectory: process.cwd(),
	environment: process.env,
	log: (level, logger, message, fields) => console.error(JSON.stringify({ level, logger, message, ...fields })),
});
await manager.prepare(JSON.parse(process.argv[2]!), {});
manager.activate();
setInterval(() => {}, 1000);
