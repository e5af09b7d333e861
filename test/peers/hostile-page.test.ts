/** A hostile page that is open in a browser on the server's machine cannot read or change the configuration. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, serve, temporaryFolder } from '../harness.ts';

/** The attacks that the page attempts. `API` is the Admin API under a host name that the attacker chose. */
const ATTACKS = `
const document_ = JSON.stringify({ sites: [] });
const attempts = {
	'simple fetch': api => fetch(api + '/load', { method: 'POST', mode: 'no-cors', headers: { 'Content-Type': 'text/plain' }, body: document_ }),
	'fetch with cors': api => fetch(api + '/load', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: document_ }),
	'blob without a type': api => fetch(api + '/load', { method: 'POST', mode: 'no-cors', body: new Blob([document_]) }),
	'patch': api => fetch(api + '/config/sites', { method: 'PATCH', headers: { 'Content-Type': 'application/json' }, body: '[]' }),
	'delete': api => fetch(api + '/config/sites', { method: 'DELETE' }),
	'stop': api => fetch(api + '/stop', { method: 'POST', mode: 'no-cors' }),
	'beacon': async api => { navigator.sendBeacon(api + '/stop', ''); return { status: 0 }; },
	'read': async api => { const answer = await fetch(api + '/config/'); return { status: answer.status, text: await answer.text() }; },
	'form': async api => {
		const frame = Object.assign(document.createElement('iframe'), { name: 'f' });
		const form = Object.assign(document.createElement('form'), { action: api + '/load', method: 'POST', enctype: 'text/plain', target: 'f' });
		form.append(Object.assign(document.createElement('input'), { name: document_.slice(0, -1) + ',"x":"', value: '"}' }));
		document.body.append(frame, form);
		const loaded = new Promise(resolve => frame.addEventListener('load', resolve));
		form.submit();
		await loaded;
		return { status: 0 };
	},
};
(async () => {
	const results = {};
	for (const api of APIS) {
		for (const [name, attempt] of Object.entries(attempts)) {
			const later = new Promise(resolve => setTimeout(resolve, 2000, { status: 'nothing came' }));
			try {
				const { status, text } = await Promise.race([attempt(api), later]);
				results[name + ' at ' + api] = status + (text ? ' ' + text : '');
			} catch (error) {
				results[name + ' at ' + api] = 'refused';
			}
		}
	}
	await fetch('/done', { method: 'POST', body: JSON.stringify(results) });
})();
`;

const page = suite('a hostile page');

page('neither reads nor changes the configuration, under any name', async () => {
	const folder = temporaryFolder();
	const [port, admin] = (await freePorts(2)) as [number, number];
	const file = path.join(folder, 'Configfile');
	writeFileSync(
		file,
		`{\n\tadmin 127.0.0.1:${admin}\n\tthreads 1\n}\nhttp://127.0.0.1:${port} {\n\trespond "untouched"\n}\n`,
	);
	const server = await serve([file], port, { env: { XDG_STATE_HOME: folder } });
	let results: { [attempt: string]: string } | undefined;
	const attacker = createServer((incoming, response) => {
		let body = '';
		incoming.on('data', chunk => {
			body += chunk;
		});
		incoming.on('end', () => {
			if (incoming.url === '/done') results = JSON.parse(body);
			const apis = JSON.stringify([
				`http://127.0.0.1:${admin}`,
				`http://localhost:${admin}`,
				`http://rebound.test:${admin}`,
			]);
			response.setHeader('Content-Type', 'text/html');
			response.end(incoming.url === '/' ? `<body><script>const APIS = ${apis};${ATTACKS}</script>` : '');
		});
	}).listen(0, '127.0.0.1');
	await once(attacker, 'listening');
	// The second visit is to the rebound name, so that the page and the Admin API seem to belong to the same site.
	const origins = ['http://127.0.0.1', 'http://rebound.test'].map(
		origin => `${origin}:${(attacker.address() as AddressInfo).port}/`,
	);
	try {
		for (const origin of origins) {
			results = undefined;
			const browser = spawn(
				'chromium',
				[
					...['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', `--user-data-dir=${temporaryFolder()}`],
					...['--host-resolver-rules=MAP rebound.test 127.0.0.1', '--remote-debugging-port=0', origin],
				],
				{ stdio: 'ignore' },
			);
			const end = performance.now() + 40_000;
			while (results === undefined && performance.now() < end) await new Promise(resolve => setTimeout(resolve, 50));
			browser.kill('SIGKILL');
			await once(browser, 'close');
			assert.ok(results, 'the page came to its end');
			assert.is(Object.keys(results).length, 27);
			for (const [attempt, result] of Object.entries<string>(results)) {
				assert.not.match(result, /^2|untouched/, `${origin}: ${attempt}: ${result}`);
			}
			assert.is(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'untouched', origin);
			assert.is((await fetch(`http://127.0.0.1:${admin}/config/sites/0/pipeline/0/body`)).status, 200);
			assert.is((await fetch(`http://127.0.0.1:${admin}/ready`)).status, 200);
		}
	} finally {
		attacker.close();
		await server.stop();
	}
});

page.run();
