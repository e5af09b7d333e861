/** Global option `servers`: settings of listeners, of all or of one; what it knows stands in options/servers/. */

import { parseServerListener } from '../../document/server-settings.ts';
import type { Subdirective } from '../../lower/lower-context.ts';
import { UNAVAILABLE_SERVER_OPTIONS, unavailableMessage } from '../../lower/unavailable.ts';
import type { Schema } from '../directives/directive.ts';
import type { GlobalOption } from './option.ts';
import { serverOptions } from './servers/index.ts';
import type { ServerDraft } from './servers/server-option.ts';

/** `settings.servers`. */
export const servers: GlobalOption = {
	id: 'servers',
	names: { configfile: ['servers'], compatfile: ['servers'] },
	usage: 'servers [<listener>] { <option>… }',
	summary: 'Settings of listeners: time-outs, limits, and what is read before the protocol.',
	documentation: [
		'With an address (`:8080`, `127.0.0.1:8080`) the block is for the listener on exactly that address; without one it is',
		'for every listener that has no block of its own. Blocks do not add up.',
		'',
		'```',
		'{',
		'	servers {',
		'		timeouts {',
		'			read_header 10s',
		'			read_body_idle 30s 500',
		'			idle 2m',
		'		}',
		'		max_header_size 64KiB',
		'		limits {',
		'			connections_per_client 200',
		'			requests 2000',
		'			queue 500 2s',
		'		}',
		'	}',
		'}',
		'```',
		'',
		'A load takes all of this over without a restart; what bounds connections holds for those that come.',
		'',
		'Some bounds are fixed. The streams of an HTTP/2 connection share 4 MiB of responses that the client has not taken:',
		'bodies are read from files, upstreams and caches as its windows allow, and while whole responses that are made here',
		'fill the 4 MiB, its further requests begin when 64 KiB have been sent, or one a second.',
		...serverOptions.flatMap(({ usage, summary, documentation }) => [
			'',
			`\`${usage}\``,
			'',
			summary,
			...(documentation ? ['', ...documentation] : []),
		]),
	].join('\n'),
	lower: (line, settings, cx) => {
		const [listener, extra] = line.words.slice(1);
		if (extra) cx.count(line, line.words.slice(1), 0, 1, servers.usage);
		const blocks = (settings.servers as ServerDraft[] | undefined) ?? [];
		if (listener && parseServerListener(listener.text) === undefined) {
			cx.problem('error', 'servers/listener', listener.span, `\`${listener.text}\` is not an address to listen on.`, {
				hint: 'Write :443, 127.0.0.1:80 or [::1]:80.',
			});
		}
		if (blocks.some(block => block.listener === listener?.text)) {
			const message = `cannot have 'servers' global options with duplicate listener addresses: ${listener?.text ?? ''}`;
			cx.problem('error', 'servers/listener', (listener ?? line.words[0]!).span, message);
		}
		const server: ServerDraft = listener ? { listener: listener.text } : {};
		const known: { [name: string]: Subdirective } = {};
		for (const option of serverOptions) {
			known[option.name] = (args, at) => option.lower(at, args, { server, settings, listener }, cx);
		}
		for (const name of UNAVAILABLE_SERVER_OPTIONS) {
			known[name] ??= (_args, at) => {
				cx.problem('error', 'option/unavailable', at.words[0]!.span, unavailableMessage(name));
			};
		}
		cx.subdirectives(line.block, known, 'servers', {
			compatible: name => `unrecognized servers option '${name}'`,
		});
		// A block that only fills settings of every listener would hide the general block from its listener for nothing.
		if (Object.keys(server).length > 0) settings.servers = [...blocks, cx.origin(server, line.span)];
	},
	schema: {
		type: 'array',
		description:
			'Settings of listeners. The item with the address of a listener is for it; the one without an address is for all others.',
		items: {
			type: 'object',
			properties: {
				listener: { type: 'string', minLength: 1, description: '`:443`, `127.0.0.1:80`.' },
				...(Object.assign({}, ...serverOptions.map(option => option.schema)) as { [field: string]: Schema }),
				'@id': { type: 'string' },
			},
			additionalProperties: false,
		},
	},
	startup: false,
	repeatable: true,
};
