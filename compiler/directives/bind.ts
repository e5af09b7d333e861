/** `bind`: the interfaces that a site listens on. */

import { isListenHost } from '../lower/listen-host.ts';
import type { SiteDirective } from './directive.ts';

/** Interfaces of a site. */
export const bind: SiteDirective = {
	kind: 'site',
	id: 'bind',
	names: { configfile: ['bind'], compatfile: ['bind'] },
	usage: 'bind <host>…',
	summary: 'Listens on the given interfaces only.',
	documentation: [
		'Hosts without a port (the port comes from the site address). Several `bind`s of one site add up. Without any, the',
		'hosts of the global option `default_bind` are used, else every interface.',
		'',
		'```',
		':8080 {',
		'	bind 127.0.0.1 ::1',
		'	respond "local only"',
		'}',
		'```',
	].join('\n'),
	lower: ({ line, args }, site, cx) => {
		cx.count(line, args, 1, Number.POSITIVE_INFINITY, bind.usage);
		if (line.block) {
			cx.problem(
				'error',
				'directive/unavailable',
				line.block.open,
				'Choosing protocols in `bind` is not part of this build yet.',
			);
		}
		const hosts = args.filter(word => isListenHost(word, cx)).map(word => word.text.replace(/^\[(.*)\]$/, '$1'));
		site.bind = [...((site.bind ?? []) as string[]), ...hosts];
	},
	schema: { type: 'array', items: { type: 'string' }, description: 'Hosts to listen on, without a port.' },
};
