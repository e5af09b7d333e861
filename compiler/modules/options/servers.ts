/** Global option `servers`: settings of all listeners or of a single one. The options inside it are in options/servers/. */

import type { Schema } from '../../document/schema-type.ts';
import { parseServerListener } from '../../document/server-settings.ts';
import { UNAVAILABLE_SERVER_OPTIONS, unavailableMessage } from '../../lower/context/unavailable.ts';
import type { SubdirectiveHandler } from '../contract/lower-context.ts';
import type { GlobalOption } from '../contract/option.ts';
import type { ServerDraft } from '../contract/server-option.ts';
import { serverOptions } from './servers/index.ts';

/** Global option; sets `settings.servers` in the document. */
export const servers: GlobalOption = {
	id: 'servers',
	names: { configfile: ['servers'], compatfile: ['servers'] },
	usage: 'servers [<listener>] { <option>… }',
	summary: 'Configures listeners: timeouts, limits, and what is read before the protocol.',
	documentation: [
		'With an address (`:8080`, `127.0.0.1:8080`), the block applies to the listener on exactly that address; without one,',
		'to every listener without a block of its own. Blocks are not merged.',
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
		'A reload applies all of this without a restart; limits of connections apply to new ones.',
		'',
		'Some limits are fixed. An HTTP/2 connection has at most 128 open requests; for HTTP/3, see `quic`. The streams of an HTTP/2',
		'connection share 4 MiB of response data that the client has not read:',
		'bodies are read from files, upstreams and caches as its flow-control windows allow. While responses generated here',
		'fill the 4 MiB, further requests start when 64 KiB have been sent, or one per second.',
		...serverOptions.flatMap(({ usage, summary, documentation }) => [
			'',
			`\`${usage}\``,
			'',
			summary,
			...(documentation ? ['', ...documentation] : []),
		]),
	].join('\n'),
	lower: (line, settings, cx) => {
		const [listenerWord, extraWord] = line.words.slice(1);
		if (extraWord) cx.count(line, line.words.slice(1), 0, 1, servers.usage);
		const blocks = (settings.servers as ServerDraft[] | undefined) ?? [];
		if (listenerWord && parseServerListener(listenerWord.text) === undefined) {
			cx.problem(
				'error',
				'servers/listener',
				listenerWord.span,
				`\`${listenerWord.text}\` is not a listener address.`,
				{
					hint: 'Write :443, 127.0.0.1:80 or [::1]:80.',
				},
			);
		}
		if (blocks.some(block => block.listener === listenerWord?.text)) {
			const message = `cannot have 'servers' global options with duplicate listener addresses: ${listenerWord?.text ?? ''}`;
			cx.problem('error', 'servers/listener', (listenerWord ?? line.words[0]!).span, message);
		}
		const server: ServerDraft = listenerWord ? { listener: listenerWord.text } : {};
		const handlers: { [name: string]: SubdirectiveHandler } = {};
		for (const option of serverOptions) {
			handlers[option.name] = (args, innerLine) =>
				option.lower(innerLine, args, { server, settings, listener: listenerWord }, cx);
		}
		for (const name of UNAVAILABLE_SERVER_OPTIONS) {
			handlers[name] ??= (_args, innerLine) => {
				cx.problem('error', 'option/unavailable', innerLine.words[0]!.span, unavailableMessage(name));
			};
		}
		cx.subdirectives(line.block, handlers, 'servers', {
			compatibleMessage: name => `unrecognized servers option '${name}'`,
		});
		// A block that sets only process-wide settings adds no item to `settings.servers`: an empty item for a listener would hide the
		// settings for all listeners from it.
		if (Object.keys(server).length > 0) settings.servers = [...blocks, cx.origin(server, line.span)];
	},
	schema: {
		type: 'array',
		description:
			'Settings of listeners. An item with an address applies to that listener; the one without an address to all others.',
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
