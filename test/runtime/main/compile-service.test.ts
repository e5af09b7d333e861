/** If the compile thread is replaced, the new thread knows which host names the process has served. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document } from '../../../compiler/document/document.ts';
import { CompileService } from '../../../runtime/main/compile-service.ts';
import { TestAuthority } from '../../certificates.ts';
import { temporaryFolder } from '../../harness.ts';
import { jsonInput } from '../running-server.ts';

const folder = temporaryFolder();
const authority = await TestAuthority.make();
const { certificate, key } = await authority.issue({ names: ['a.test', 'b.test', 'c.test'] });
const files = { certificate: path.join(folder, 'pair.pem'), key: path.join(folder, 'pair.key') };
writeFileSync(files.certificate, certificate);
writeFileSync(files.key, key);

function document(...names: readonly string[]): Document {
	return {
		settings: { auto_https: ['off'] },
		sites: names.map(name => ({
			addresses: [`https://${name}:8443`],
			tls: { certificates: [files] },
			pipeline: [],
		})),
	};
}

const service = suite('compile service');

service('a replacement thread knows the served names, but not the earlier contents of files', async () => {
	const start = { workingDirectory: folder, environment: {}, etagKey: new Uint8Array(32) };
	const compiler = new CompileService(start, () => {}, { reportAfterMs: 3000, abandonAfterMs: 6000 });
	const prepared = async (...names: readonly string[]) => {
		const answer = await compiler.ask('prepare', { input: jsonInput(document(...names)), unconfigured: false });
		return answer.result;
	};
	try {
		assert.is(await prepared('a.test', 'b.test'), 'swap');
		await compiler.commitCandidate(['a.test', 'b.test']);
		assert.is(await prepared('a.test'), 'swap');
		await compiler.commitCandidate(['a.test']);
		assert.is(await prepared('a.test'), 'unchanged');
		await compiler.ask('stall', { how: 'stall' }).catch(() => {});
		assert.is(compiler.stallCount, 1);
		assert.is(await prepared('a.test'), 'swap', 'the files may have changed in the meantime');
		assert.is(await prepared('a.test', 'b.test'), 'swap', 'a name that was served before can be added again');
		assert.is(await prepared('a.test', 'c.test'), 'restart_required');
	} finally {
		await compiler.end();
	}
});

service.run();
