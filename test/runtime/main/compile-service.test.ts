/** What a compile thread knows if it starts as the replacement of another one, or after the first configuration was loaded. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ConfigInput } from '../../../compiler/dialects/dialect.ts';
import type { Document } from '../../../compiler/document/document.ts';
import { CompileService } from '../../../runtime/main/compile-service.ts';
import { CompilerFailure } from '../../../runtime/main/compiler-client.ts';
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
	const compiler = new CompileService(start, () => {}, undefined, { reportAfterMs: 1000, abandonAfterMs: 2500 });
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

/** Returns a site that uses the certificate files, as text. */
function siteText(before: string): ConfigInput {
	const text = `${before}https://a.test:8443 {\n\ttls ${files.certificate} ${files.key}\n\trespond "hello"\n}\n`;
	return { format: 'configfile', text: `{\n\tauto_https off\n}\n${text}`, name: 'Configfile' };
}

service('after the first configuration, which no thread compiles, the thread knows everything about it', async () => {
	const start = { workingDirectory: folder, environment: {}, etagKey: new Uint8Array(32) };
	const compiler = new CompileService(start, () => {});
	const outcomeOf = async (before: string) => {
		const { result } = await compiler.ask('prepare', { input: siteText(before), unconfigured: false });
		return result;
	};
	try {
		assert.is((await compiler.prepareFirst(siteText(''))).result, 'swap');
		await compiler.commitCandidate(['a.test']);
		const { json } = await compiler.ask('read', { path: ['sites', '0', 'addresses'] });
		assert.is(json, '["https://a.test:8443"]');
		assert.is(await outcomeOf(''), 'unchanged', 'the contents of the certificate files are known');
		assert.is(await outcomeOf('\n'), 'swap', 'the lines of the configuration are known');
	} finally {
		await compiler.end();
	}
	const afterEnd = await compiler.ask('read', { path: [] }).catch((error: unknown) => error);
	assert.instance(afterEnd, CompilerFailure);
});

service('a mistake in the first configuration is reported', async () => {
	const start = { workingDirectory: folder, environment: {}, etagKey: new Uint8Array(32) };
	const compiler = new CompileService(start, () => {});
	const outcome = await compiler.prepareFirst(siteText('unknown.test {\n\tunknown\n}\n'));
	assert.is(outcome.result, 'refused');
	assert.is(await compiler.end(), true);
});

service.run();
