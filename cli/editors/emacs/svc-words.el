;;; svc-words.el --- Words of configurations of svc  -*- lexical-binding: t -*-

;;; Commentary:
;; Derived from the modules of svc.

;;; Code:

(defconst svc-words-configfile
  '(
    (directives "abort" "acme_server" "basic_auth" "bind" "cache" "cookie" "copy_response" "copy_response_headers" "encode" "error" "errors_page" "file_server" "forward_auth" "fs" "handle" "handle_errors" "handle_path" "header" "intercept" "invoke" "limit_concurrent" "limit_rate" "live" "log" "log_append" "log_name" "log_skip" "map" "method" "metrics" "mirror" "php_fastcgi" "push" "rate_limit" "ready" "redir" "replace" "request_body" "request_header" "respond" "reverse_proxy" "rewrite" "root" "route" "split" "templates" "timeouts" "tls" "tracing" "try_files" "uri" "vars")
    (matchers "all" "any" "client_ip" "expression" "file" "header" "header_regexp" "host" "method" "path" "path_regexp" "protocol" "query" "remote_ip" "share" "tls" "url_pattern" "vars" "vars_regexp")
    (options "acme_ca" "acme_ca_root" "acme_dns" "acme_eab" "admin" "auto_https" "cache" "cert_issuer" "cert_lifetime" "cluster" "debug" "default_bind" "default_sni" "dns" "email" "fallback_sni" "grace_period" "http_port" "https_port" "io" "key_type" "local_certs" "log" "metrics" "ocsp_interval" "ocsp_stapling" "on_demand_tls" "persist_config" "pki" "preferred_chains" "renew_interval" "renewal_window_ratio" "servers" "shutdown_delay" "skip_install_trust" "storage" "storage_check" "storage_clean_interval" "threads" "tls_resolvers")
    (keywords "else" "import" "let" "test" "upstream" "use" "when")
    (operators "and" "not" "or")))

(defconst svc-words-compatfile
  '(
    (directives "abort" "acme_server" "basic_auth" "basicauth" "bind" "cache" "copy_response" "copy_response_headers" "encode" "error" "file_server" "forward_auth" "fs" "handle" "handle_errors" "handle_path" "header" "intercept" "invoke" "limit_concurrent" "live" "log" "log_append" "log_name" "log_skip" "map" "method" "metrics" "php_fastcgi" "push" "rate_limit" "ready" "redir" "request_body" "request_header" "respond" "reverse_proxy" "rewrite" "root" "route" "skip_log" "templates" "timeouts" "tls" "tracing" "try_files" "uri" "vars")
    (matchers "all" "any" "client_ip" "expression" "file" "header" "header_regexp" "host" "method" "path" "path_regexp" "protocol" "query" "remote_ip" "share" "tls" "url_pattern" "vars" "vars_regexp")
    (options "acme_ca" "acme_ca_root" "acme_dns" "acme_eab" "admin" "auto_https" "cache" "cert_issuer" "cert_lifetime" "cluster" "debug" "default_bind" "default_sni" "dns" "email" "fallback_sni" "grace_period" "http_port" "https_port" "key_type" "local_certs" "log" "metrics" "ocsp_interval" "ocsp_stapling" "on_demand_tls" "persist_config" "pki" "preferred_chains" "renew_interval" "renewal_window_ratio" "servers" "shutdown_delay" "skip_install_trust" "storage" "storage_check" "storage_clean_interval" "threads" "tls_resolvers")
    (keywords "import")
    (operators "not")))

(provide 'svc-words)
;;; svc-words.el ends here
