/** `bind`: the interfaces that a site listens on. */

import type { SiteBind } from '../../document/document.ts';
import { LISTEN_HOSTS, lowerListenHosts } from '../../lower/lower-listen-host.ts';
import type { SiteDirective } from './directive.ts';

/** Interfaces of a site. */
export const bind: SiteDirective = {
	kind: 'site',
	id: 'bind',
	names: { configfile: ['bind'], compatfile: ['bind'] },
	usage: 'bind <host>… [{ protocols h1|h2|h2c… }]',
	summary: 'Listens on the given interfaces only, and speaks the given versions of HTTP there.',
	documentation: [
		'Hosts without a port (the port comes from the site address). Several `bind`s of one site add up. Without any, the',
		'hosts of the global option `default_bind` are used, else every interface. `protocols` in a block says what is spoken',
		'on these interfaces, instead of what the global option `servers` says; sites that share one add theirs up.',
		'',
		'`tcp6/[::]` takes no IPv4 clients, so that `tcp4/0.0.0.0` may stand beside it. `unix//run/svc.sock|0660` is a Unix',
		'socket with the permissions of its file, 0600 if left out; it is removed at the end, and one that a server left behind',
		'is replaced. `fd/3` is a socket that the process was started with. Where systemd passes sockets (LISTEN_FDS), the number',
		'must be one of theirs, and `fd/web` is the one with that FileDescriptorName. Neither has a port, nor redirects from',
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
			compatible: name => `unknown subdirective: ${name}`,
		});
		site.bind = [...((site.bind ?? []) as SiteBind[]), ...entries];
	},
	schema: LISTEN_HOSTS,
};
