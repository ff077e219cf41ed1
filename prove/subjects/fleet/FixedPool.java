import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * A server with a thread for each connection, which hands the calls of a request to a fixed pool and waits for them.
 *
 * Arguments: port, port of the back end, calls of a request, workers of the pool.
 */
public final class FixedPool {
    private static final InetAddress HERE = InetAddress.getLoopbackAddress();

    public static void main(String[] words) throws IOException {
        int backEnd = Integer.parseInt(words[1]);
        int calls = Integer.parseInt(words[2]);
        ExecutorService pool = Executors.newFixedThreadPool(Integer.parseInt(words[3]));
        // Each worker keeps a connection.
        ThreadLocal<Connection> mine = ThreadLocal.withInitial(() -> Connection.to(backEnd));
        try (ServerSocket listener = new ServerSocket(Integer.parseInt(words[0]), 50, HERE)) {
            while (true) {
                Connection client = new Connection(listener.accept());
                new Thread(() -> serve(client, pool, mine, calls)).start();
            }
        }
    }

    private static void serve(Connection client, ExecutorService pool, ThreadLocal<Connection> mine, int calls) {
        try (client) {
            String request;
            while ((request = client.readHead()) != null) {
                String path = request.split(" ")[1];
                List<Future<String>> results = new ArrayList<>();
                for (int call = 0; call < calls; call++) {
                    String target = path + "/" + call;
                    results.add(pool.submit(() -> mine.get().get(target)));
                }
                String name = path.substring(1);
                for (Future<String> result : results) {
                    if (!result.get().equals(name)) {
                        throw new IllegalStateException("an answer to another request");
                    }
                }
                client.write("HTTP/1.1 200 OK\r\nContent-Length: " + name.length() + "\r\n\r\n" + name);
            }
        } catch (Exception error) {
            error.printStackTrace();
        }
    }

    /** A connection that HTTP/1.1 is spoken on, one request after the other. */
    private static final class Connection implements AutoCloseable {
        private final Socket socket;
        private final BufferedReader reader;

        Connection(Socket socket) throws IOException {
            this.socket = socket;
            socket.setTcpNoDelay(true);
            InputStream bytes = socket.getInputStream();
            reader = new BufferedReader(new InputStreamReader(bytes, StandardCharsets.US_ASCII));
        }

        static Connection to(int port) {
            try {
                return new Connection(new Socket(HERE, port));
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        }

        /** Calls the back end, and returns the body of its answer. */
        String get(String target) throws IOException {
            write("GET " + target + " HTTP/1.1\r\nHost: back-end\r\n\r\n");
            String head = readHead();
            if (head == null) {
                throw new IOException("the back end has closed the connection");
            }
            int length = Integer.parseInt(head.split("content-length: ")[1].split("\n")[0]);
            char[] body = new char[length];
            for (int read = 0; read < length; ) {
                int more = reader.read(body, read, length - read);
                if (more < 0) {
                    throw new IOException("the back end has closed the connection");
                }
                read += more;
            }
            return new String(body);
        }

        /** The lines up to the empty one; null: the connection is closed. */
        String readHead() throws IOException {
            StringBuilder head = new StringBuilder();
            String line;
            while ((line = reader.readLine()) != null && !line.isEmpty()) {
                head.append(head.length() == 0 ? line : line.toLowerCase()).append('\n');
            }
            return line == null ? null : head.toString();
        }

        void write(String text) throws IOException {
            OutputStream bytes = socket.getOutputStream();
            bytes.write(text.getBytes(StandardCharsets.US_ASCII));
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }
}
