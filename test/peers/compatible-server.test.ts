/**
 * The compatible server as judge: every serve case written as a Compatfile gets the same status, location and body
 * from it as from us.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { goldenCases } from '../golden.ts';
import { freePorts, rawExchange, serve, temporaryFolder, waitForPort } from '../harness.ts';

/** Where the judge's release (2.6) is older than the reference we follow, or differs by our own decision. */
const DIFFERENCES: { [request: string]: string } = {
	'respond-body-and-status: another host matches no site': 'site addresses of one listener',
};

const judged = suite('serve cases before the compatible server');

for (const golden of goldenCases('serve')) {
	const text = golden.file('Compatfile');
	if (text === undefined) continue;
	judged(golden.name, async () => {
		const [ourPort, judgePort] = (await freePorts(2)) as [number, number];
		const folder = path.join(temporaryFolder(), golden.name);
		cpSync(golden.folder, folder, { recursive: true });
		const ours = await serve(['Compatfile'], ourPort, { cwd: folder, env: { PORT: String(ourPort) } });
		const judgeFile = path.join(folder, 'Judgefile');
		writeFileSync(judgeFile, `{\n\tadmin off\n\tauto_https off\n}\n${text}`);
		const judge = spawn('caddy', ['run', '--config', judgeFile, '--adapter', 'caddyfile'], {
			cwd: folder,
			stdio: 'ignore',
			env: { ...process.env, PORT: String(judgePort), HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
		});
		const judgeEnded = once(judge, 'close');
		try {
			await waitForPort(judgePort);
			const differences: string[] = [];
			for (const request of golden.oneOf('requests.http').text.split(/^### /m).slice(1)) {
				const name = request.slice(0, request.indexOf('\n')).trim();
				if (`${golden.name}: ${name}` in DIFFERENCES) continue;
				const [mine, theirs] = await Promise.all(
					[ourPort, judgePort].map(async port => essence(await rawExchange(port, wire(request)), port)),
				);
				if (mine !== theirs) differences.push(`${name}\n  ours:  ${mine}\n  judge: ${theirs}`);
			}
			assert.is(differences.join('\n'), '');
		} finally {
			judge.kill('SIGKILL');
			await judgeEnded;
			await ours.stop();
		}
	});
}

judged.run();

/** A request of `requests.http` as it goes on the wire. */
function wire(request: string): string {
	const text = request.slice(request.indexOf('\n') + 1);
	const split = text.indexOf('\n\n');
	const body = split === -1 ? '' : text.slice(split + 2).replace(/\n+$/, '');
	const head = (split === -1 ? text : text.slice(0, split)).trimEnd().split('\n');
	if (body) head.push(`Content-Length: ${Buffer.byteLength(body)}`);
	head.push('Connection: close');
	return `${head.join('\r\n')}\r\n\r\n${body}`;
}

/** Status, `Location`, fields that begin with `X-` and the body: what a configuration decides. */
function essence(answer: string, port: number): string {
	const split = answer.indexOf('\r\n\r\n');
	const lines = answer.slice(0, split).split('\r\n');
	const fields = lines.filter(line => /^(location|x-[^:]*|content-type):/i.test(line)).map(line => line.toLowerCase());
	const essentials = [lines[0]!.slice(9, 12), ...fields.sort(), JSON.stringify(answer.slice(split + 4))];
	return essentials.join(' | ').replaceAll(String(port), '<port>');
}
