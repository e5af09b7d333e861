/** PHP with php-fpm: pages, forms, uploads, PATH_INFO, errors, static files, and files that must not be executed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, type ServerProcess, serve, temporaryFolder, until, untilOutput } from '../harness.ts';

const php = suite('php-fpm behind');

let fpm: ChildProcess;
let server: ServerProcess;
let url = '';
let folder = '';
let socket = '';

php.before(async () => {
	const [port] = await freePorts(1);
	folder = temporaryFolder();
	chmodSync(folder, 0o755);
	const site = path.join(folder, 'site');
	mkdirSync(path.join(site, 'sub'), { recursive: true });
	const write = (name: string, text: string): void => writeFileSync(path.join(site, name), text);
	write('index.php', '<?php echo "front ", $_SERVER["REQUEST_URI"], " ", $_SERVER["QUERY_STRING"];');
	write('page.php', '<?php header("X-A: b"); echo "page ", $_SERVER["PATH_INFO"] ?? "", " ", $_SERVER["SCRIPT_NAME"];');
	write(
		'form.php',
		'<?php ksort($_POST); echo json_encode([$_POST, $_GET, $_COOKIE, getenv("MODE"), $_SERVER["MODE"]]);',
	);
	write('upload.php', '<?php echo $_FILES["file"]["size"], " ", hash_file("sha256", $_FILES["file"]["tmp_name"]);');
	write('error.php', '<?php http_response_code(503); error_log("something broke"); echo "sorry";');
	write('fatal.php', '<?php no_such_function();');
	write('large.php', '<?php for ($i = 0; $i < 50; $i++) echo str_repeat(chr(65 + $i % 26), 1000000);');
	write('redirect.php', '<?php header("Location: /elsewhere"); setcookie("a", "1"); setcookie("b", "2");');
	write('x.jpg', '<?php echo "EVIL";');
	write('style.css', 'body {}');
	write('sub/index.php', '<?php echo "sub";');
	socket = path.join(folder, 'fpm.sock');
	writeFileSync(
		path.join(folder, 'fpm.conf'),
		`[global]
error_log = ${folder}/fpm.log
daemonize = no
[www]
user = nobody
group = nogroup
listen = ${socket}
listen.mode = 0666
pm = static
pm.max_children = 4
; As unsafe as it can be set up: what may run is then decided before it.
security.limit_extensions =
php_admin_value[cgi.fix_pathinfo] = 1
php_admin_value[upload_max_filesize] = 200M
php_admin_value[post_max_size] = 200M
php_admin_value[memory_limit] = 64M
php_admin_flag[display_errors] = off
php_admin_flag[log_errors] = on
`,
	);
	fpm = spawn('php-fpm8.2', ['-n', '-R', '-y', path.join(folder, 'fpm.conf')], { stdio: 'ignore' });
	await until('the socket', () => existsSync(socket));
	writeFileSync(
		path.join(folder, 'Configfile'),
		`{
	admin off
}
http://127.0.0.1:${port} {
	root site
	php_fastcgi unix/${socket} {
		env MODE {method}
		capture_stderr
	}
	file_server
}
`,
	);
	server = await serve(['Configfile'], port!, { cwd: folder });
	url = `http://127.0.0.1:${port}`;
});

php.after(async () => {
	await server?.stop();
	if (fpm.exitCode === null) {
		fpm.kill('SIGTERM');
		await once(fpm, 'exit');
	}
});

async function get(target: string, init: RequestInit = {}): Promise<string> {
	const response = await fetch(`${url}${target}`, { redirect: 'manual', ...init });
	return `${response.status} ${await response.text()}`;
}

php('the front controller, scripts, folders and PATH_INFO work', async () => {
	assert.is(await get('/'), '200 front / ');
	assert.is(await get('/pretty/url?a=b'), '200 front /pretty/url?a=b a=b');
	assert.is(await get('/page.php'), '200 page  /page.php');
	assert.is(await get('/page.php/more/info'), '200 page /more/info /page.php');
	assert.is(await get('/sub/'), '200 sub');
	const folder = await fetch(`${url}/sub?q=1`, { redirect: 'manual' });
	assert.equal([folder.status, folder.headers.get('location')], [308, '/sub/?q=1']);
	const head = await fetch(`${url}/page.php`, { method: 'HEAD' });
	assert.equal([head.status, head.headers.get('x-a'), await head.text()], [200, 'b', '']);
});

php('forms, queries, cookies and configured variables reach the script', async () => {
	const init = { method: 'POST', body: new URLSearchParams({ a: '1', b: 'ä&=' }), headers: { Cookie: 'c=d' } };
	assert.is(await get('/form.php?q=1', init), '200 [{"a":"1","b":"\\u00e4&="},{"q":"1"},{"c":"d"},"POST","POST"]');
});

php('an upload of 100 MB arrives completely', async () => {
	const bytes = Buffer.alloc(104_857_600, 'an upload ');
	const form = new FormData();
	form.append('file', new Blob([bytes]), 'file.bin');
	const { createHash } = await import('node:crypto');
	const sum = createHash('sha256').update(bytes).digest('hex');
	assert.is(await get('/upload.php', { method: 'POST', body: form }), `200 104857600 ${sum}`);
});

php('large responses, redirects and several cookies are forwarded', async () => {
	assert.is((await get('/large.php')).length, 50_000_004);
	const response = await fetch(`${url}/redirect.php`, { redirect: 'manual' });
	assert.equal([response.status, response.headers.get('location')], [302, '/elsewhere']);
	assert.is(response.headers.getSetCookie().length, 2);
});

php('an error keeps its status, and standard error goes to the log', async () => {
	assert.is(await get('/error.php'), '503 sorry');
	assert.is(await get('/fatal.php'), '500 ');
	await untilOutput(server, /"level":"error".*something broke/);
	await untilOutput(server, /"level":"error".*no_such_function/);
});

php('files that are not scripts are served, and an upload cannot be executed under any name', async () => {
	assert.is(await get('/style.css'), '200 body {}');
	assert.is(await get('/x.jpg'), '200 <?php echo "EVIL";');
	for (const name of [
		'/x.jpg/y.php',
		'/x.jpg%2Fy.php',
		'/x.jpg/.php',
		'/x.jpg/a/b.php',
		'/x.jpg%00.php',
		'/x.jpg/%2e%2e/x.jpg/y.php',
	]) {
		assert.not.match(await get(name), /EVIL/, name);
	}
});

php('the application may see its files under another root, as in containers', async () => {
	// php-fpm executes files below its own root, although svc looks them up below the root of the site.
	const app = path.join(folder, 'app');
	mkdirSync(path.join(app, 'sub'), { recursive: true });
	for (const name of ['index.php', 'page.php', 'sub/index.php']) {
		writeFileSync(
			path.join(app, name),
			'<?php echo "app ", $_SERVER["SCRIPT_NAME"], " ", $_SERVER["DOCUMENT_ROOT"], " ", $_SERVER["SERVER_NAME"], " ", $_SERVER["SERVER_ADDR"];',
		);
	}
	const [port] = await freePorts(1);
	writeFileSync(
		path.join(folder, 'Compatfile'),
		`{
	admin off
}
http://127.0.0.1:${port} {
	root site
	php_fastcgi unix/${socket} {
		root ${app}
	}
	file_server
}
`,
	);
	const containers = await serve(['Compatfile'], port!, { cwd: folder });
	try {
		const ask = async (target: string) => {
			const response = await fetch(`http://127.0.0.1:${port}${target}`, { redirect: 'manual' });
			return `${response.status} ${response.headers.get('location') ?? (await response.text())}`;
		};
		const told = (script: string) => `200 app ${script} ${app} 127.0.0.1 127.0.0.1`;
		assert.is(await ask('/'), told('/index.php'));
		assert.is(await ask('/page.php'), told('/page.php'));
		assert.is(await ask('/pretty/url'), told('/index.php'));
		assert.is(await ask('/sub'), '308 /sub/');
		assert.is(await ask('/sub/'), told('/sub/index.php'));
		assert.is(await ask('/style.css'), '200 body {}');
	} finally {
		await containers.stop();
	}
});

php('more concurrent requests than PHP processes all succeed', async () => {
	const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => get(`/page.php?${i}`)));
	assert.equal(new Set(answers), new Set(['200 page  /page.php']));
});

php.run();
