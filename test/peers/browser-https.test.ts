/** A browser that trusts the internal authority's root loads a page with a hundred images over HTTP/2. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, serve, temporaryFolder } from '../harness.ts';

const IMAGES = 100;

/** Counts the images that came, and tells the server with the protocol of the page and of the images. */
const PAGE = `<!doctype html><title>images</title><body><script>
const images = Array.from({ length: ${IMAGES} }, (_, at) => new Promise(resolve => {
	const image = new Image();
	image.onload = () => resolve(1);
	image.onerror = () => resolve(0);
	image.src = '/image/' + at + '.svg';
	document.body.append(image);
}));
Promise.all(images).then(async loaded => {
	const count = loaded.reduce((sum, one) => sum + one, 0);
	const protocols = new Set([...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].map(entry => entry.nextHopProtocol));
	await fetch('/done/' + count + '/' + [...protocols].join('+') + '/' + isSecureContext);
});
</script></body>`;

const browser = suite('a browser over HTTPS');

browser('trusts the root, speaks HTTP/2 and gets every image', async () => {
	const folder = temporaryFolder();
	const [port = 0, httpPort = 0] = await freePorts(2);
	writeFileSync(path.join(folder, 'index.html'), PAGE);
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{
	http_port ${httpPort}
	https_port ${port}
	storage file_system ${folder}/store
}
localhost {
	log {
		output stdout
	}
	handle /image/* {
		header Content-Type image/svg+xml
		respond '<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"><rect width="4" height="4"/></svg>'
	}
	handle /done/* {
		respond 204
	}
	handle {
		root .
		file_server
	}
}
`.replaceAll("'", '`'),
	);
	const server = await serve([], port, { cwd: folder });
	try {
		const store = path.join(folder, '.pki/nssdb');
		mkdirSync(store, { recursive: true });
		const root = path.join(folder, 'store/pki/authorities/local/root.crt');
		const certutil = (...args: readonly string[]) => spawnSync('certutil', ['-d', `sql:${store}`, ...args]).status;
		assert.is(certutil('-N', '--empty-password'), 0);
		assert.is(certutil('-A', '-t', 'C,,', '-n', 'root', '-i', root), 0);
		const child = spawn(
			'chromium',
			[
				...['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', `--user-data-dir=${temporaryFolder()}`],
				...['--remote-debugging-port=0', `https://localhost:${port}/`],
			],
			{ stdio: 'ignore', env: { ...process.env, HOME: folder } },
		);
		const done = /"uri":"(\/done\/[^"]*)"/;
		const end = performance.now() + 60_000;
		while (!done.test(server.output()) && performance.now() < end)
			await new Promise(resolve => setTimeout(resolve, 100));
		child.kill('SIGKILL');
		await once(child, 'close');
		assert.is(done.exec(server.output())?.[1], `/done/${IMAGES}/h2/true`, server.output().slice(-2000));
	} finally {
		await server.stop();
	}
});

browser.run();
