/** `bind`: the interfaces on which a site listens. */

import type { SiteBind } from '../../document/document.ts';
import type { SiteDirective } from '../contract/directive.ts';
import { LISTEN_HOSTS_SCHEMA, lowerListenHosts } from '../words/lower-listen-host.ts';

export const bind: SiteDirective = {
	kind: 'site',
	id: 'bind',
	names: { configfile: ['bind'], compatfile: ['bind'] },
	usage: 'bind <host>… [{ protocols h1|h2|h2c|h3… }]',
	summary: 'Listens only on the given interfaces, with the given HTTP versions.',
	documentation: [
		'Hosts have no port (the port comes from the site address). Several `bind`s in one site add up. Without any, the',
		'hosts of the global option `default_bind` apply, otherwise every interface. `protocols` in a block sets the HTTP versions',
		'on these interfaces, overriding the global option `servers`; if several sites share an interface, theirs add up.',
		'',
		'`tcp6/[::]` accepts no IPv4 clients, so it can be combined with `tcp4/0.0.0.0`. `unix//run/svc.sock|0660` is a Unix',
		'socket with file permissions, 0600 by default. The file is removed at exit, and one that another server left behind',
		'is replaced. `fd/3` is a socket inherited at start. If systemd passes sockets (LISTEN_FDS), the number',
		'must be one of theirs, and `fd/web` is the one with that FileDescriptorName. Neither kind has a port or redirects from',
		'HTTP; a site there is served over TLS unless its address begins with http:// or has the HTTP port. Both may name',
		'`{env.*}`.',
		'',
		'```',
		':8080 {',
		'	bind 127.0.0.1 ::1',
		'	respond "local only"',
		'}',
		'http://app.example.com {',
		'	bind unix//run/svc/app.sock|0660',
		'	respond "through a proxy on this machine"',
		'}',
		'```',
	].join('\n'),
	lower: ({ line, args }, site, cx) => {
		cx.count(line, args, 1, Number.POSITIVE_INFINITY, bind.usage);
		const entries = lowerListenHosts(line, 'bind', cx, {
			compatibleMessage: name => `unknown subdirective: ${name}`,
		});
		site.bind = [...((site.bind ?? []) as SiteBind[]), ...entries];
	},
	schema: LISTEN_HOSTS_SCHEMA,
};
