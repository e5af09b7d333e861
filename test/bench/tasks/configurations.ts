/** Minimal configurations for each server: one worker, no access log, no feature that the others lack. */

/** Returns an nginx configuration around one server block. */
export function nginxConfiguration(server: string, http: string = ''): string {
	return `daemon off; worker_processes 1; pid nginx.pid;
events { worker_connections 16384; }
http {
	access_log off; keepalive_requests 1000000000; client_max_body_size 0;
	client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
	${http}
	${server && `server { ${server} }`}
}
`;
}

/** Returns a Configfile with `threads` data-plane threads; `options` are lines of global options. */
export function svcConfiguration(sites: string, threads: number = 1, options: string = ''): string {
	return `{\n\tthreads ${threads}\n${options}}\n${sites}`;
}

export function caddyConfiguration(sites: string): string {
	return `{\n\tadmin off\n\tauto_https off\n\tlog {\n\t\toutput discard\n\t}\n}\n${sites}`;
}

/**
 * Returns a haproxy configuration with one thread. Each connection takes two descriptors, so `maxconn` fits a limit of 20,000
 * descriptors per process.
 */
export function haproxyConfiguration(sections: string): string {
	return `global
	nbthread 1
	maxconn 9900
defaults
	mode http
	maxconn 9900
	option forwardfor
	timeout client 60s
	timeout server 60s
	timeout tunnel 60s
	timeout connect 5s
${sections}`;
}
