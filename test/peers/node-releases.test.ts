/** A checkout also runs on other releases of Node than the pinned one, with `node` I/O. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { THREAD_CODE_VARIABLE } from '../../runtime/threads/thread-source.ts';
import { freePorts, ROOT, startServer, temporaryFolder, WAIT_LIMIT_MS, waitForPort } from '../harness.ts';

const releases = suite('releases of Node');

/** The oldest major release that the checkout supports, and the latest release. */
for (const wanted of ['24', 'latest']) {
	releases(`node@${wanted} validates, serves over HTTP, TLS and a Unix socket, and stops`, async () => {
		const folder = temporaryFolder();
		writeFileSync(path.join(folder, 'package.json'), '{"private":true}');
		// The checkout's list of packages that may run install scripts does not apply in this folder.
		execFileSync('npm', ['install', '--silent', '--no-audit', '--no-fund', `node@${wanted}`], {
			cwd: folder,
			stdio: ['ignore', 'ignore', 'inherit'],
		});
		// The threads must also run from the sources, because the build is for one release of Node.
		delete process.env[THREAD_CODE_VARIABLE];
		const node = path.join(folder, 'node_modules/node/bin/node');
		const svc = path.join(ROOT, 'cli/main.ts');
		const info = spawnSync(node, [svc, 'build-info'], { encoding: 'utf8' });
		const release = /toolchain: node v(\S+)/.exec(info.stdout)?.[1];
		assert.ok(release, info.stderr);
		const io = release === process.versions.node ? 'direct' : 'node';
		assert.match(info.stdout, `io: ${io}\n`);

		const [plain, secure, origin] = (await freePorts(3)) as [number, number, number];
		const site = path.join(folder, 'site');
		mkdirSync(site);
		writeFileSync(path.join(site, 'large.txt'), 'x'.repeat(300_000));
		const socket = path.join(folder, 'socket');
		writeFileSync(
			path.join(folder, 'Configfile'),
			`{
	http_port ${plain}
	https_port ${secure}
	skip_install_trust
	storage file_system ${folder}/store
	auto_https disable_redirects
}

http://127.0.0.1:${origin} {
	respond "from upstream"
}

http://127.0.0.1:${plain} {
	handle_path /files/* {
		root ${site}
		encode
		file_server
	}
	handle {
		reverse_proxy 127.0.0.1:${origin}
	}
}

http://unix.example {
	bind unix/${socket}
	respond "by the socket"
}

localhost {
	respond "over TLS"
}
`,
		);
		const checked = spawnSync(node, [svc, 'validate', path.join(folder, 'Configfile')], { encoding: 'utf8' });
		assert.is(checked.status, 0, checked.stderr);

		const server = startServer([svc, 'run', path.join(folder, 'Configfile')], { command: node });
		try {
			await Promise.all([waitForPort(plain), waitForPort(secure), waitForPort(origin)]);
			const proxied = await fetch(`http://127.0.0.1:${plain}/`);
			assert.is(await proxied.text(), 'from upstream');
			const file = await fetch(`http://127.0.0.1:${plain}/files/large.txt`);
			assert.is((await file.text()).length, 300_000);
			assert.is(await fetchOverTls(secure), 'over TLS');
			const unix = spawnSync('curl', ['-s', '--unix-socket', socket, 'http://unix.example/'], { encoding: 'utf8' });
			assert.is(unix.stdout, 'by the socket');
		} finally {
			assert.is(await server.stop(WAIT_LIMIT_MS), 0, server.output());
		}
		assert.match(server.output(), `"io":"${io}"`);
		assert.not.match(server.output(), /"level":"error"/);
	});
}

/** Requests `localhost` over TLS and returns the body. The certificate is from an authority made for this test. */
function fetchOverTls(port: number): Promise<string> {
	return new Promise((resolve, reject) => {
		const options = {
			host: '127.0.0.1',
			port,
			servername: 'localhost',
			rejectUnauthorized: false,
			headers: { Host: 'localhost' },
		};
		request(options, response => {
			let text = '';
			response.setEncoding('utf8').on('data', piece => {
				text += piece;
			});
			response.on('end', () => resolve(text));
		})
			.on('error', reject)
			.end();
	});
}

releases.run();
