/** A browser that trusts the internal authority's root loads a page with a hundred images, and the quickstart, over HTTP/2. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, ROOT, type ServerProcess, serve, temporaryFolder } from '../harness.ts';

const IMAGES = 100;

/**
 * A page that counts the images it has loaded. It reports to the server the count, and the protocols by which the page and the
 * images were loaded.
 */
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

/**
 * Returns the quickstart's site for HTTPS, under a host name and with an access log. The quickstart's tests and options are
 * omitted.
 */
function quickstartSite(): string {
	const folder = path.join(ROOT, 'fixtures/quickstart');
	const text = readFileSync(path.join(folder, 'Configfile'), 'utf8');
	return text
		.slice(text.indexOf('let docs'), text.indexOf('\ntest '))
		.replace(':{$QUICKSTART_PORT:8080} {', 'quick.localhost {\n\tlog {\n\t\toutput stdout\n\t}')
		.replaceAll('root site', `root ${path.join(folder, 'site')}`);
}

const browser = suite('a browser over HTTPS');
const folder = temporaryFolder();
let server: ServerProcess;
let port = 0;

browser.before(async () => {
	const ports = await freePorts(2);
	port = ports[0]!;
	writeFileSync(path.join(folder, 'index.html'), PAGE);
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{
	http_port ${ports[1]}
	https_port ${port}
	storage file_system ${folder}/store
}
localhost {
	log {
		output stdout
	}
	handle /image/* {
		header Content-Type image/svg+xml
		respond \`<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"><rect width="4" height="4"/></svg>\`
	}
	handle /done/* {
		respond 204
	}
	handle {
		root .
		file_server
	}
}
${quickstartSite()}`,
	);
	server = await serve([], port, { cwd: folder });
	const store = path.join(folder, '.pki/nssdb');
	mkdirSync(store, { recursive: true });
	const root = path.join(folder, 'store/pki/authorities/local/root.crt');
	const certutil = (...args: readonly string[]) => spawnSync('certutil', ['-d', `sql:${store}`, ...args]).status;
	assert.is(certutil('-N', '--empty-password'), 0);
	assert.is(certutil('-A', '-t', 'C,,', '-n', 'root', '-i', root), 0);
});

browser.after(async () => {
	await server.stop();
});

/** Opens a page and waits, for at most a minute, until `come` reports that the server has logged the requests of the page. */
async function visit(url: string, come: () => boolean): Promise<void> {
	const child = spawn(
		'chromium',
		[
			...['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', `--user-data-dir=${temporaryFolder()}`],
			...['--remote-debugging-port=0', url],
		],
		{ stdio: 'ignore', env: { ...process.env, HOME: folder } },
	);
	const end = performance.now() + 60_000;
	while (!come() && performance.now() < end) await new Promise(resolve => setTimeout(resolve, 100));
	child.kill('SIGKILL');
	await once(child, 'close');
}

browser('trusts the root, speaks HTTP/2 and gets every image', async () => {
	const done = /"uri":"(\/done\/[^"]*)"/;
	await visit(`https://localhost:${port}/`, () => done.test(server.output()));
	assert.is(done.exec(server.output())?.[1], `/done/${IMAGES}/h2/true`, server.output().slice(-2000));
});

browser('shows the quickstart with its style and script, over HTTP/2', async () => {
	const came = (uri: string) =>
		new RegExp(`"proto":"HTTP/2.0","method":"GET","host":"quick.localhost:${port}","uri":"${uri}"`).test(
			server.output(),
		);
	await visit(`https://quick.localhost:${port}/`, () => came('/') && came('/style.css') && came('/ask.js'));
	for (const uri of ['/', '/style.css', '/ask.js']) assert.ok(came(uri), `${uri}\n${server.output().slice(-3000)}`);
});

browser.run();
