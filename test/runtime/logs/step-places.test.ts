/**
 * The field `at` in log entries: the position of the directive that answered or failed, even through imports, snippets, routes
 * and reloads.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ConfigFormat } from '../../../compiler/dialects/dialect.ts';
import { rawExchange } from '../../harness.ts';
import { eventually, jsonInput, type TestServer, withServer } from '../running-server.ts';

const places = suite('positions in log entries');

/** A configuration in which `«name»` marks each line to which a log entry is to refer. */
const COMPATFILE = `import more.conf
(page) {
	respond /snip "from a snippet" # «snippet»
}
&(shared) {
	respond /shared "from a route" # «route»
}
http://one.localhost:0 {
	bind 127.0.0.1
	log
	handle /snip {
		import page
	}
	handle /a* {
		respond /a1 "one" # «a1»
		respond "same" # «a»
	}
	handle /b* {
		respond /b1 "one" # «b1»
		respond "same" # «b»
	}
	handle /invoked* {
		invoke shared
		respond "behind" # «behind»
	}
	handle /intercepted* {
		intercept {
			@gone status 410
			handle_response @gone {
				respond "replaced" # «replaced»
			}
		}
		handle /intercepted/in* {
			respond "gone" 410
		}
		respond "kept" # «kept»
	}
	handle /files* {
		file_server # «files»
	}
	handle /down* {
		reverse_proxy 127.0.0.1:1 # «down»
	}
	handle /secret* {
		basic_auth { # «secret»
			bob $2a$04$Zkx19XLiW6VYouLHR5NmfO0U0z2GTNmpkT/5qqR7hx4IjWJPDhjvG
		}
	}
	handle /tea* {
		error 418
	}
	handle {
		error "nothing" 404 # «nothing»
	}
	handle_errors 418 {
		handle {
			respond "tea" # «tea»
		}
	}
}
`;

const MORE = `http://two.localhost:0 {
	bind 127.0.0.1
	log
	respond "imported" # «imported»
}
`;

const CONFIGFILE = `import more.conf

(page) {
	respond /snip "from a snippet" # «snippet»
}
http://one.localhost:0 {
	bind 127.0.0.1
	log

	import page
	handle /a* {
		respond "same" # «a»
	}
	handle /b* {
		respond "same" # «b»
	}
	error "nothing" 404 # «nothing»
}
`;

/** Request paths, each with the mark of the line that determines the response. */
const MARKED_PATHS: readonly (readonly [path: string, mark: string])[] = [
	...(['snippet', 'a', 'b', 'nothing'] as const).map(
		mark => [{ snippet: '/snip', a: '/a2', b: '/b2', nothing: '/x' }[mark], mark] as const,
	),
	...[
		['/a1', 'a1'] as const,
		['/b1', 'b1'] as const,
		['/invoked', 'behind'] as const,
		['/intercepted', 'kept'] as const,
	],
	...[['/intercepted/in', 'replaced'] as const, ['/files/x', 'files'] as const, ['/down', 'down'] as const],
	...[['/secret', 'secret'] as const, ['/tea', 'tea'] as const],
];

function placeOf(name: string, text: string, mark: string): string | undefined {
	const line = text.split('\n').findIndex(one => one.includes(`«${mark}»`));
	return line === -1 ? undefined : `${name}:${line + 1}`;
}

/** Sends a request and returns the field `at` of its access log entry. */
async function at(server: TestServer, host: string, path: string): Promise<unknown> {
	const of = () =>
		server.log.entries.filter(({ request }) => {
			const asked = request as { uri: string; host: string } | undefined;
			return asked?.uri === path && asked.host === host;
		});
	const before = of().length;
	await rawExchange(server.port, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
	await eventually(`an entry of ${host}${path}`, () => of().length > before);
	return of().at(-1)!.at;
}

async function check(server: TestServer, name: string, text: string): Promise<void> {
	for (const [path, mark] of MARKED_PATHS) {
		const place = placeOf(name, text, mark);
		if (place !== undefined) assert.is(await at(server, 'one.localhost', path), place, path);
	}
}

const LANGUAGES = [
	['compatfile', 'Compatfile', COMPATFILE],
	['configfile', 'Configfile', CONFIGFILE],
] as const satisfies readonly (readonly [ConfigFormat, string, string])[];

for (const [format, name, text] of LANGUAGES) {
	places(`entries refer to lines of a ${name} and of its imported files, also after lines move`, async () => {
		const folder = await mkdtemp(join(tmpdir(), 'svc-places-'));
		try {
			await writeFile(join(folder, 'more.conf'), MORE);
			const path = join(folder, name);
			await writeFile(path, text);
			const input = { format, text, name: path, path };
			await withServer(undefined, { input, threads: 1 }, async server => {
				await check(server, name, text);
				assert.is(await at(server, 'two.localhost', '/'), placeOf('more.conf', MORE, 'imported'));
				const down = format === 'compatfile' ? placeOf(name, text, 'down') : undefined;
				const failed = () => server.log.entries.find(({ logger }) => logger === 'http.log.error');
				if (down) await eventually(`the error of a handler at ${down}`, () => failed()?.at === down);

				const moved = `# A line.\n${text.replace('\tlog\n', '\tlog\n\n')}`;
				assert.is((await server.runtime.load({ ...input, text: moved })).result, 'applied');
				await check(server, name, moved);
				const again = await server.runtime.load({ ...input, text: moved });
				assert.ok(again.result === 'applied' && again.unchanged);

				// If a document was loaded without source text, the field contains a JSON pointer.
				const document = JSON.parse((await server.runtime.adapt(input)).document!);
				const sites = [document.sites[1], document.sites[0]];
				assert.is((await server.runtime.load(jsonInput({ ...document, sites }))).result, 'applied');
				assert.match(String(await at(server, 'one.localhost', '/snip')), /^\/sites\/0\/pipeline\/\d+/);
				assert.is(await at(server, 'two.localhost', '/'), '/sites/1/pipeline/0');
			});
		} finally {
			await rm(folder, { recursive: true, force: true });
		}
	});
}

places('a document loaded with source positions is referred to by them; invalid positions are ignored', async () => {
	const site = {
		addresses: ['http://:0'],
		bind: ['127.0.0.1'],
		logs: [{}],
		pipeline: [{ handler: 'respond', body: 'x' }],
	};
	const placed = (sites: unknown) => ({
		...({ format: 'json', name: '<request>', placed: true } as const),
		text: JSON.stringify({ document: { sites: [site] }, places: { sites, routes: [] } }),
	});
	await withServer(undefined, { input: placed([['a "file":3']]), threads: 1 }, async server => {
		const host = `127.0.0.1:${server.port}`;
		assert.is(await at(server, host, '/'), 'a "file":3');
		for (const wrong of [undefined, [], [[3]], 'x', [['x'.repeat(5000)]], [[]], [null]]) {
			assert.is((await server.runtime.load(placed(wrong))).result, 'applied');
			const place = await at(server, host, '/');
			assert.ok(
				place === 'a "file":3' || place === '/sites/0/pipeline/0' || place === undefined,
				JSON.stringify(wrong),
			);
		}
	});
});

places.run();
