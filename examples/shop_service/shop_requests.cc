#include "shop_requests.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include <spanprof/context.hpp>

namespace {

struct Product {
  unsigned id;
  std::string name;
  double price;
};

const std::vector<Product>& Catalogue() {
  static const std::vector<Product> products = [] {
    std::vector<Product> all;
    std::mt19937 random(1);
    for (unsigned i = 0; i < 4000; ++i) {
      std::string name = "product ";
      for (int k = 0; k < 12; ++k) name += static_cast<char>('a' + random() % 26);
      all.push_back({i, std::move(name), static_cast<double>(random() % 10000) / 100});
    }
    return all;
  }();
  return products;
}

uint64_t NewId() {
  thread_local std::mt19937_64 random(std::hash<std::thread::id>()(std::this_thread::get_id()));
  return random() | 1;
}

struct Trace {
  uint64_t high = 0, low = 0, root = 0;
};

// "00-<32 hex>-<16 hex>-01": the caller's trace goes on. Otherwise one begins here.
Trace TraceOf(std::string_view traceparent) {
  Trace trace = {NewId(), NewId(), NewId()};
  if (traceparent.size() < 55) return trace;
  std::from_chars(traceparent.data() + 3, traceparent.data() + 19, trace.high, 16);
  std::from_chars(traceparent.data() + 19, traceparent.data() + 35, trace.low, 16);
  return trace;
}

[[gnu::noinline]] std::vector<Product> FindProducts(std::string_view words) {
  std::vector<Product> found;
  for (const Product& product : Catalogue()) {
    if (product.name.find(words) != std::string::npos) found.push_back(product);
  }
  return found;
}

[[gnu::noinline]] void SortByPrice(std::vector<Product>& products) {
  std::sort(products.begin(), products.end(),
            [](const Product& a, const Product& b) { return a.price < b.price; });
}

[[gnu::noinline]] std::string RenderList(const std::vector<Product>& products) {
  std::string page = "[";
  for (const Product& product : products) {
    page += "{\"id\":" + std::to_string(product.id) + ",\"name\":\"" + product.name +
            "\",\"price\":" + std::to_string(product.price) + "},";
  }
  return page + "]";
}

[[gnu::noinline]] double PriceWithTax(double price) {
  double sum = price;
  for (int year = 1; year < 2000; ++year) sum = std::fma(sum, 1.0000001, std::sqrt(year) * 1e-9);
  return sum;
}

[[gnu::noinline]] uint64_t SignOrder(std::string_view order) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (int round = 0; round < 300; ++round) {
    for (const char c : order) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return hash;
}

// A call to a database: a span of its own, in which the thread waits.
void QueryDatabase(const Trace& trace, std::chrono::microseconds duration) {
  const spanprof::Scope span(trace.high, trace.low, NewId(), trace.root);
  std::this_thread::sleep_for(duration);
}

std::string Search(const Trace& trace) {
  QueryDatabase(trace, std::chrono::microseconds(300));
  std::vector<Product> found = FindProducts("e");
  SortByPrice(found);
  return RenderList(found);
}

std::string ShowProduct(const Trace& trace, std::string_view path) {
  QueryDatabase(trace, std::chrono::microseconds(500));
  const size_t index = std::hash<std::string_view>()(path) % Catalogue().size();
  return RenderList({Catalogue()[index]});
}

std::string ShowCart(const Trace& trace) {
  QueryDatabase(trace, std::chrono::microseconds(200));
  double sum = 0;
  for (size_t i = 0; i < 40; ++i) sum += PriceWithTax(Catalogue()[i * 7].price);
  return std::to_string(sum);
}

std::string CheckOut(const Trace& trace) {
  QueryDatabase(trace, std::chrono::microseconds(800));
  const std::string order =
      RenderList(std::vector<Product>(Catalogue().begin(), Catalogue().begin() + 20));
  double sum = 0;
  for (size_t i = 0; i < 10; ++i) sum += PriceWithTax(Catalogue()[i].price);
  return std::to_string(SignOrder(order)) + " " + std::to_string(sum);
}

}  // namespace

std::string HandleRequest(const Request& request) {
  const Trace trace = TraceOf(request.traceparent);
  const spanprof::Scope span(trace.high, trace.low, trace.root, trace.root);
  spanprof::set_tag(kTenantTag, request.tenant);
  std::string route = "GET ";
  std::function<std::string()> handler;
  if (request.path.starts_with("/search")) {
    route += "/search";
    handler = [&] { return Search(trace); };
  } else if (request.path.starts_with("/product/")) {
    route += "/product/{id}";
    handler = [&] { return ShowProduct(trace, request.path); };
  } else if (request.path.starts_with("/cart")) {
    route += "/cart";
    handler = [&] { return ShowCart(trace); };
  } else {
    route = "POST /checkout";
    handler = [&] { return CheckOut(trace); };
  }
  spanprof::set_tag(kRouteTag, route);
  // Known from the router here; a framework may tell it only when the request ends.
  spanprof_endpoint_set(trace.root, route.data(), route.size());
  return handler();
}
