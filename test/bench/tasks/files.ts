/** Bench rows of `file_server` and `encode`: files of a folder, uncompressed and compressed. */
import { caddyConfiguration, nginxConfiguration, svcConfiguration } from './configurations.ts';
import { createManyFiles, FILES_PER_FOLDER, FOLDER_COUNT, fileTree } from './file-tree.ts';
import type { Contender, LoadTask } from './task.ts';

/** The gzip level that every server uses. */
const GZIP_LEVEL = 5;

const NGINX = 'sendfile on; tcp_nopush on; open_file_cache max=1000; types { application/json json; text/plain txt; }';

/** Returns contenders that serve one folder, which is created when the first of them starts. */
function fileContenders(makeRoot: () => string): readonly Contender[] {
	let folder: string | undefined;
	const root = (): string => {
		folder ??= makeRoot();
		return folder;
	};
	return [
		{
			server: 'svc',
			configuration: port => svcConfiguration(`http://127.0.0.1:${port} {\n\troot ${root()}\n\tfile_server\n}\n`),
		},
		{ server: 'nginx', configuration: port => nginxConfiguration(`listen 127.0.0.1:${port}; root ${root()};`, NGINX) },
		{
			server: 'caddy',
			configuration: port => caddyConfiguration(`http://127.0.0.1:${port} {\n\troot * ${root()}\n\tfile_server\n}\n`),
		},
	];
}

/** Returns contenders that also compress, either files or responses of an upstream. */
function compressionContenders(from: 'folder' | 'upstream'): readonly Contender[] {
	const root = fileTree();
	const site = (to: number): string => {
		const block = `\tencode {\n\t\tgzip ${GZIP_LEVEL}\n\t}\n`;
		return from === 'folder'
			? `${block}\troot * ${root}\n\tfile_server\n`
			: `${block}\treverse_proxy 127.0.0.1:${to}\n`;
	};
	const gzip = `gzip on; gzip_comp_level ${GZIP_LEVEL}; gzip_types application/json; gzip_vary on;`;
	const location =
		from === 'folder'
			? `root ${root};`
			: 'location / { proxy_pass http://b; proxy_http_version 1.1; proxy_set_header Connection ""; }';
	return [
		{
			server: 'svc',
			configuration: (port, { files }) => svcConfiguration(`http://127.0.0.1:${port} {\n${site(files)}}\n`),
		},
		{
			server: 'nginx',
			configuration: (port, { files }) =>
				nginxConfiguration(
					`listen 127.0.0.1:${port}; ${gzip} ${location}`,
					`${NGINX} upstream b { server 127.0.0.1:${files}; keepalive 128; keepalive_requests 1000000000; }`,
				),
		},
		{
			server: 'caddy',
			configuration: (port, { files }) => caddyConfiguration(`http://127.0.0.1:${port} {\n${site(files)}}\n`),
		},
	];
}

const row = (name: string, file: string, most: number): LoadTask => ({
	name: `file ${name}`,
	load: { kind: 'requests', path: file },
	contenders: fileContenders(fileTree),
	bounds: { nginx: most, caddy: 0.5 },
});

export const FILE_TASKS: readonly LoadTask[] = [
	row('10 KB', '/10k.txt', 1),
	row('1 MB', '/1m.txt', 1.8),
	{
		// The rate is never reached: the row shows what it costs to count the bytes, and that the kernel still sends the file.
		name: 'file 1 MB below a limited rate',
		load: { kind: 'requests', path: '/1m.txt' },
		contenders: [
			{
				label: 'svc, limited',
				server: 'svc',
				configuration: port =>
					svcConfiguration(`http://127.0.0.1:${port} {\n\troot ${fileTree()}\n\tlimit_rate 100GiB\n\tfile_server\n}\n`),
			},
			fileContenders(fileTree)[0]!,
			{
				label: 'nginx, limited',
				server: 'nginx',
				configuration: port =>
					nginxConfiguration(`listen 127.0.0.1:${port}; limit_rate 100000m; root ${fileTree()};`, NGINX),
			},
		],
	},
	{
		name: 'file 4 KB, one of 100,000',
		load: { kind: 'requests', path: '/%d/%d.txt', below: [FOLDER_COUNT, FILES_PER_FOLDER] },
		contenders: fileContenders(createManyFiles),
		bounds: { nginx: 1.3, caddy: 0.5 },
	},
	{
		name: 'file 10 KB of JSON, gzip',
		load: { kind: 'requests', path: '/10k.json', headers: { 'Accept-Encoding': 'gzip' } },
		contenders: compressionContenders('folder'),
		bounds: { nginx: 1.1, caddy: 0.5 },
	},
	{
		name: 'file 10 KB of JSON by way of the proxy, gzip',
		load: { kind: 'requests', path: '/tree/10k.json', headers: { 'Accept-Encoding': 'gzip' } },
		contenders: compressionContenders('upstream'),
		bounds: { nginx: 1.1, caddy: 0.5 },
	},
];
