/** The Admin API does not reveal the contents of files that a posted configuration imports. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startAdmin } from '../../admin/server.ts';
import type { DiagnosticReport } from '../../compiler/diagnostics/diagnostic.ts';
import { startRuntime } from '../../runtime/main/runtime.ts';
import { temporaryFolder } from '../harness.ts';
import { recordingLog } from '../runtime/running-server.ts';

const folder = temporaryFolder();

function writeFile(name: string, text: string): string {
	const file = path.join(folder, name);
	writeFileSync(file, text);
	return file;
}

/** Files that are not configurations. Each contains a secret that must not appear in any response. */
const SECRETS = [
	[
		writeFile('shadow', 'root:$6$salt$veryhidden:19000:0:99999:7:::\ndaemon:*:19000:0:99999:7:::\n'),
		/veryhidden|root|daemon/,
	],
	[writeFile('key.pem', '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----\n'), /MIIEv|BEGIN|END/],
	[writeFile('environment', 'PASSWORD="veryhidden\nTOKEN={veryhidden\n'), /veryhidden|PASSWORD|TOKEN/],
] as const;

const withheld = suite('imported files');

withheld('their text is quoted in diagnostics only if the running configuration imports them too', async () => {
	const log = recordingLog();
	const snippet = writeFile('snippet', 'respond hello\n');
	const main = writeFile('Configfile', `{\n\tadmin 127.0.0.1:0\n}\nhttp://127.0.0.1:0 {\n\timport ${snippet}\n}\n`);
	const text = readFileSync(main, 'utf8');
	const runtime = await startRuntime({
		input: { format: 'configfile', text, name: 'Configfile', path: main },
		threads: 1,
		writers: { stdout: log, stderr: log },
	});
	const admin = await startAdmin(runtime, { log: () => {}, onStop: () => {} });
	const post = async (
		target: string,
		type: string,
		body: string,
	): Promise<{ text: string; diagnostics: DiagnosticReport[] }> => {
		const headers = { 'Content-Type': `text/${type}` };
		const response = await fetch(`http://${admin.address}${target}`, { method: 'POST', headers, body });
		const answer = await response.text();
		const { error, diagnostics } = JSON.parse(answer);
		return { text: answer, diagnostics: error?.diagnostics ?? diagnostics };
	};
	try {
		for (const target of ['/adapt', '/load', '/load?dry_run', '/load?confirm=10s']) {
			for (const type of ['configfile', 'caddyfile']) {
				for (const [file, words] of SECRETS) {
					for (const request of [`import ${file}\n`, `http://x:80 {\n\timport ${file}\n}\n`]) {
						const answer = await post(target, type, request);
						assert.ok(answer.diagnostics.length > 0, answer.text);
						const [first] = answer.diagnostics;
						assert.is(first?.file, file);
						assert.match(first!.message, 'Details are withheld');
						assert.match(first!.text, `--> ${file}:${first!.line}:${first!.column}\n`);
						assert.match(first!.text, 'imported at <request>:');
						assert.not.match(answer.text.replaceAll(file, ''), words);
					}
				}
			}
		}
		assert.not.match(log.text(), /veryhidden|MIIEv/);
		// A caller who may change the configuration may see both the posted text and the files of the running configuration.
		const ownAdaptation = await post('/adapt', 'configfile', 'http://x:80 {\n\trespnd hi\n}\n');
		assert.match(ownAdaptation.diagnostics[0]!.text, '2 |     respnd hi');
		writeFile('snippet', 'respnd hello\n');
		const known = await post('/load', 'configfile', `http://x:80 {\n\timport ${snippet}\n}\n`);
		assert.match(known.diagnostics[0]!.text, '1 | respnd hello');
	} finally {
		await admin.close();
		runtime.kill();
		await runtime.stop();
	}
});

withheld.run();
